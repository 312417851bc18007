"""Watching a run: its output is kept and streamed, and it ends with its agent's right to it."""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from io import StringIO

from django.db import DatabaseError, connection, transaction

from core.actions import Action
from core.actors import System
from core.database import is_broken, is_lost
from core.decision import Allow, Denied, Deny
from ledger.services import record
from orgchart.policy.vocabulary import ToolMode
from toolbox.caller import Caller
from toolbox.denial_limits import EVENT_BYTES
from toolbox.registry import REGISTRY
from toolbox.rules import can_use
from toolbox.scopes import active_scopes
from toolbox.sessions import caller_now
from toolbox.space import require_space
from toolbox.wake import wake
from workspace.models import Run
from workspace.runs.rules import KEPT, next_piece

LOOK_EVERY = 1.0
"""Seconds between two looks at the database."""


class RunRight:
    """The right of a call to its run, as it is at the call (Spec: hands 16)."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._scopes = set(active_scopes(caller))

    def why_ended(self) -> str:
        """Why the right has ended since then, or ''."""
        try:
            caller = caller_now(self._caller)
        except Denied as refusal:
            return refusal.deny.message
        if caller.pause is not None:
            return "its agent is paused"
        if not self._scopes <= set(active_scopes(caller)):
            return "its contract opens no folders any more"
        return _why_refused(self._caller, caller)


class RunWatcher:
    """Called with each piece of a run's output; False ends the run, and `reason` says why."""

    def __init__(self, row: Run, caller: Caller) -> None:
        self.reason, self._text = "", StringIO()
        self.output = bytearray()
        self._row, self._caller = row, caller
        self._right = RunRight(caller)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._kept = self._sent = self._pieces = 0
        self._next = time.monotonic() + LOOK_EVERY

    @property
    def size(self) -> int:
        """The bytes of its log, and of the events in which it was streamed."""
        return len(self.output) + self._pieces * EVENT_BYTES

    @property
    def text(self) -> str:
        """What it printed; put together when it is asked for, not for each of a million pieces."""
        return self._text.getvalue()

    def __call__(self, chunk: bytes) -> bool:
        """Keep a piece of output; whether the run may go on."""
        piece = chunk[: KEPT - len(self.output)]
        self.output += piece
        self._text.write(self._decoder.decode(piece).replace("\x00", "\ufffd"))
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK_EVERY
            self.look()
        return not self.reason

    def end(self) -> None:
        """Stream what is left, of a run that was long enough to be streamed at all."""
        self._text.write(self._decoder.decode(b"", final=True))
        while self._sent and self._stream():
            pass

    def look(self) -> None:
        """Keep and stream what came, and ask why to stop; next time where the connection ended, or
        PostgreSQL broke a deadlock.

        A database that starts again ends no run: its end is recorded when it is there.
        """
        try:
            self._keep()
            self._stream()
            self.reason = self._why_to_stop()
        except DatabaseError as problem:
            if is_lost(problem):
                connection.close()
            elif not is_broken(problem):
                raise

    def _keep(self) -> None:
        text = self.text
        if len(text) > self._kept:
            Run.objects.filter(id=self._row.id).update(output=text)
            self._kept = len(text)

    def _stream(self) -> bool:
        """Send the next piece of output to the agent's event stream; whether there was one.

        Spec: hands 28.
        """
        piece = next_piece(self.text, self._sent)
        if not piece:
            return False
        with transaction.atomic():
            record(
                Action.RUN_PRINTED,
                by=System(name="runs", organisation_id=self._caller.organisation_id),
                at=self._caller.clock.now(),
                subject=f"run:{self._row.id}",
                for_agent_id=self._caller.agent.id,
                kind="run",
                details={"run": str(self._row.id), "from": self._sent, "output": piece},
            )
            wake(self._caller.agent.id)
        self._sent += len(piece)
        self._pieces += 1
        return True

    def _why_to_stop(self) -> str:
        """Why the run has to end, or '' (Spec: hands 16)."""
        asked = Run.objects.filter(id=self._row.id).values_list("stopped_for", flat=True).first()
        if asked is None or asked:
            return asked or "its row is gone"
        return self._right.why_ended() or _why_full()


def _why_full() -> str:
    try:
        require_space()
    except Denied as refusal:
        return refusal.deny.message
    return ""


def _why_refused(before: Caller, now: Caller) -> str:
    """Why the call would be refused by now, or '': its mode was closed, its tool taken away."""
    if before.session.mode is ToolMode.CODING and now.session.mode is not ToolMode.CODING:
        return "coding mode of its session was closed"
    tool = REGISTRY.get(before.tool)
    was, found = (can_use(tool, before.tool, caller.holder) for caller in (before, now))
    return found.message if isinstance(was, Allow) and isinstance(found, Deny) else ""
