"""Watching a run: its output is kept as it comes, and it ends with its agent's right to it."""

from __future__ import annotations

import time

from orgchart.models import Agent
from toolbox.caller import Caller
from toolbox.scopes import active_scopes
from workspace.models import Run

LOOK_EVERY = 1.0
"""Seconds between two looks at the database."""


class Watcher:
    """Called with each piece of a run's output; False ends the run, and `reason` says why."""

    def __init__(self, row: Run, caller: Caller) -> None:
        self.reason = ""
        self._row, self._caller = row, caller
        self._scopes = set(active_scopes(caller))
        self._output = bytearray()
        self._kept = 0
        self._next = time.monotonic() + LOOK_EVERY

    def __call__(self, chunk: bytes) -> bool:
        """Keep a piece of output; whether the run may go on."""
        self._output += chunk
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK_EVERY
            self._keep()
            self.reason = self._why_to_stop()
        return not self.reason

    def _keep(self) -> None:
        if len(self._output) > self._kept:
            self._kept = len(self._output)
            text = self._output.decode("utf-8", errors="replace").replace("\x00", "\ufffd")
            Run.objects.filter(id=self._row.id).update(output=text)

    def _why_to_stop(self) -> str:
        """Why the run has to end, or '' (Spec: hands 16)."""
        asked = Run.objects.filter(id=self._row.id).values_list("stopped_for", flat=True).first()
        if asked is None or asked:
            return asked or "its row is gone"
        if not Agent.objects.filter(id=self._caller.agent.id, active=True).exists():
            return "its agent is deactivated"
        if not self._scopes <= set(active_scopes(self._caller)):
            return "its contract opens no folders any more"
        return ""
