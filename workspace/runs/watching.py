"""Watching a run: its output is kept and streamed, and it ends with its agent's right to it."""

from __future__ import annotations

import time
from codecs import getincrementaldecoder

from django.db import transaction
from django.utils import timezone

from core.actions import Action
from core.actors import System
from ledger.services import record
from orgchart.models import Agent
from orgchart.pauses.services import pause_of
from toolbox.caller import Caller
from toolbox.scopes import active_scopes
from toolbox.wake import wake
from workspace.models import Run
from workspace.runs.rules import next_piece

LOOK_EVERY = 1.0
"""Seconds between two looks at the database."""


class Watcher:
    """Called with each piece of a run's output; False ends the run, and `reason` says why."""

    def __init__(self, row: Run, caller: Caller) -> None:
        self.reason = ""
        self._row, self._caller = row, caller
        self._scopes = set(active_scopes(caller))
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._kept = self._sent = 0
        self._next = time.monotonic() + LOOK_EVERY

    def __call__(self, chunk: bytes) -> bool:
        """Keep a piece of output; whether the run may go on."""
        self._text += self._decoder.decode(chunk).replace("\x00", "\ufffd")
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK_EVERY
            self._keep()
            self._stream()
            self.reason = self._why_to_stop()
        return not self.reason

    def end(self) -> None:
        """Stream what is left, of a run that was long enough to be streamed at all."""
        while self._sent and self._stream():
            pass

    def _keep(self) -> None:
        if len(self._text) > self._kept:
            self._kept = len(self._text)
            Run.objects.filter(id=self._row.id).update(output=self._text)

    def _stream(self) -> bool:
        """Send the next piece of output to the agent's event stream; whether there was one.

        Spec: hands 28.
        """
        piece = next_piece(self._text, self._sent)
        if not piece:
            return False
        with transaction.atomic():
            record(
                Action.RUN_PRINTED,
                by=System(name="runs", organisation_id=self._caller.organisation_id),
                at=timezone.now(),
                subject=f"run:{self._row.id}",
                for_agent_id=self._caller.agent.id,
                kind="run",
                details={"run": str(self._row.id), "from": self._sent, "output": piece},
            )
            wake(self._caller.agent.id)
        self._sent += len(piece)
        return True

    def _why_to_stop(self) -> str:
        """Why the run has to end, or '' (Spec: hands 16)."""
        asked = Run.objects.filter(id=self._row.id).values_list("stopped_for", flat=True).first()
        if asked is None or asked:
            return asked or "its row is gone"
        if not Agent.objects.filter(id=self._caller.agent.id, active=True).exists():
            return "its agent is deactivated"
        agent = self._caller.agent.id
        if pause_of(organisation_id=self._caller.organisation_id, agent_id=agent) is not None:
            return "its agent is paused"
        if not self._scopes <= set(active_scopes(self._caller)):
            return "its contract opens no folders any more"
        return ""
