"""Long work as a run: it waits for its turn, streams, can be stopped, and leaves a log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from django.db import transaction

from core.actions import Action
from core.database import retry_broken
from core.decision import Denied
from documents.tree import Unsafe
from ledger.services import record
from toolbox.caller import Caller
from toolbox.quotas import charging
from workspace.files.places import own_tree
from workspace.models import Run
from workspace.outside_calls import slot
from workspace.results import RunLog
from workspace.runs import queue
from workspace.runs.rules import KEPT, stopped
from workspace.runs.watching import RunWatcher
from workspace.tree import AGENTS

LOGS = "runs"
FAILED = 1
"""The exit status of work that was refused on the way."""


class RecordedRun:
    """A run under way. Called with what it prints it answers whether the run may go on."""

    def __init__(self, row: Run, caller: Caller) -> None:
        self.row = row
        self._caller = caller
        self._watcher = RunWatcher(row, caller)
        self._has_ended = False

    def __call__(self, chunk: bytes) -> bool:
        """Keep a piece of output, or b"" while there is none; False where the run has to end."""
        return not self._has_ended and self._watcher(chunk)

    def end(self, status: int | None, *, timed_out: bool = False) -> str:
        """Keep the log and how the run ended, with its event; why it was stopped, or ''.

        From then on it cannot be stopped. Once it has ended, a further call changes nothing.
        """
        if not self._has_ended:
            self._has_ended = True
            retry_broken(self._watcher.end, is_repeatable=True)
            retry_broken(partial(self._save, status, timed_out=timed_out), is_repeatable=True)
            self._write_log()
        return self.row.stopped_for

    @property
    def size(self) -> int:
        """The bytes that count for it (Spec: settings 6)."""
        return self._watcher.size

    def require_right(self) -> None:
        """Look whether the right to it holds still. Raises Denied INVALID_TRANSITION where it has
        ended, or a person stopped the run, which ends then.
        """
        self._watcher.look()
        if not self(b""):
            self.end(FAILED)
            self.require_not_stopped()

    def require_not_stopped(self) -> None:
        """Raise Denied INVALID_TRANSITION where the run was stopped before its end."""
        if self.row.stopped_for:
            superior = self._caller.agent.superior
            raise Denied(stopped(self.row.id, self.row.stopped_for, superior))

    def log(self) -> RunLog:
        """The run and its log as tools return them."""
        return {
            "run_id": str(self.row.id),
            "output_sha256": self.row.output_sha256,
            "log": f"{AGENTS}/{self._caller.handle}/{LOGS}/{self._log_name}",
        }

    def _save(self, status: int | None, *, timed_out: bool) -> None:
        """Record the end, once: a second time where the connection ended finds it recorded."""
        output = bytes(self._watcher.output)
        now = self._caller.clock.now()
        row = self.row
        row.output_sha256 = hashlib.sha256(output).hexdigest()
        with transaction.atomic():
            kept = Run.objects.select_for_update().filter(id=row.id)
            by_person, ended_at = kept.values_list("stopped_for", "ended_at").first() or ("", None)
            if ended_at is not None:
                return
            row.stopped_for = by_person or self._watcher.reason
            kept.update(
                ended_at=now,
                exit_status=status,
                timed_out=timed_out,
                stopped_for=row.stopped_for,
                output=self._watcher.text,
                output_sha256=row.output_sha256,
            )
            record(
                Action.RUN_ENDED,
                by=self._caller,
                at=now,
                subject=f"run:{row.id}",
                details={
                    "exit_status": status,
                    "timed_out": timed_out,
                    "stopped_for": row.stopped_for,
                    "output_sha256": row.output_sha256,
                },
            )

    def _write_log(self) -> None:
        try:
            own_tree(self._caller, LOGS).write(self._log_name, bytes(self._watcher.output))
        except (OSError, Unsafe):
            pass  # the row holds the log; a full disk must not hide how the run ended

    @property
    def _log_name(self) -> str:
        return f"{self.row.tool}-{self.row.id}.log"


@contextmanager
def recorded_run(
    *, caller: Caller, paths: Sequence[str], seconds: float, now: datetime, commit: str = ""
) -> Iterator[RecordedRun]:
    """Wait for the caller's turn and record what is done meanwhile as its run of `caller.tool`.

    `paths` name what is run, for people; `seconds` is the time it has. The run ends here at the
    latest, whatever happens. What it may print is counted before. Spec: hands 26, hands 28,
    hands 29, settings 6. Raises Denied RATE_LIMITED, QUOTA_EXCEEDED, INVALID_TRANSITION where a
    person stopped it, or its agent's right ended, before its turn.
    """
    with slot(caller, "runs"), charging.reserved(caller=caller, size=KEPT, now=now) as room:
        row = queue.take_turn(caller=caller, paths=paths, commit=commit, seconds=seconds, now=now)
        run = RecordedRun(row, caller)
        try:
            yield run
        except Denied:
            run.end(FAILED)
            raise
        finally:
            room.used = KEPT  # also where its end cannot be recorded
            run.end(None)
            room.used = run.size
