"""Each organisation's queue of runs: so many at once, and of each agent one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from weakref import WeakSet

from django.conf import settings
from django.db import Error, transaction
from django.db.models import Q, QuerySet

from core.actions import Action
from core.database import hold_lock
from core.decision import Code, Denied, refuse
from ledger.services import record
from toolbox.caller import Caller
from workspace.models import Run
from workspace.runs.rules import stopped
from workspace.runs.watching import RunRight

PATIENCE = 20.0
"""Seconds that a run waits for its turn, within the call that asked for it."""
LOOK_EVERY = 0.25
GRACE = timedelta(seconds=30)
"""After its time, until a run without an end counts as interrupted."""
OWN: WeakSet[Run] = WeakSet()
"""The runs of this process, also those that wait for their turn."""


def take_turn(
    *, caller: Caller, paths: Sequence[str], commit: str, seconds: float, now: datetime
) -> Run:
    """Wait for the caller's turn, and start its run of `seconds`, with its event (Spec: hands 26).

    Raises Denied RATE_LIMITED where the turn does not come in time, INVALID_TRANSITION where a
    person stopped it before, or the right to it ended meanwhile.
    """
    right = RunRight(caller)
    row = Run.objects.create(
        organisation_id=caller.organisation_id,
        agent_id=caller.agent.id,
        tool=caller.tool,
        paths=list(paths),
        commit=commit,
        asked_at=now,
        ends_by=caller.clock.now() + timedelta(seconds=PATIENCE) + GRACE,
    )
    OWN.add(row)
    try:
        _wait_for_turn(row, caller, seconds, right)
    except Error:  # else the next run of its agent would wait for this one, which never starts
        with suppress(Error):
            _waiting(row).delete()
        raise
    return row


def _wait_for_turn(row: Run, caller: Caller, seconds: float, right: RunRight) -> None:
    until = time.monotonic() + PATIENCE
    while not _start(row, caller, seconds, right):
        by = Run.objects.filter(id=row.id).values_list("stopped_for", flat=True).first()
        if by:
            raise Denied(stopped(row.id, by, caller.agent.superior))
        if time.monotonic() > until and _waiting(row).delete()[0]:
            raise refuse(
                Code.RATE_LIMITED,
                "the runs before this one in the organisation's queue are still under way",
                "call again in a minute",
                rule="a queue of runs for each organisation (spec: hands 26)",
                retry_after=60,
            )
        time.sleep(LOOK_EVERY)
        ended = right.why_ended()
        if ended and _waiting(row).delete()[0]:
            raise Denied(stopped(row.id, ended, caller.agent.superior))


def _waiting(row: Run) -> QuerySet[Run]:
    """The run, as long as it waits for its turn."""
    return Run.objects.filter(id=row.id, ended_at=None, started_at=None)


def _start(row: Run, caller: Caller, seconds: float, right: RunRight) -> bool:
    """Start a run if its agent runs nothing, there is a place, and the right still holds."""
    now = caller.clock.now()
    with transaction.atomic():
        hold_lock("runs", caller.organisation_id)
        present = Run.objects.filter(
            organisation_id=caller.organisation_id, ended_at=None, ends_by__gt=now
        ).exclude(id=row.id)
        running = present.exclude(started_at=None)
        mine = present.filter(agent_id=row.agent_id).filter(Q(id__lt=row.id) | ~Q(started_at=None))
        if running.count() >= settings.WORKSPACE_RUNS or mine.exists() or right.why_ended():
            return False
        row.started_at = now
        row.ends_by = now + timedelta(seconds=seconds) + GRACE
        if not _waiting(row).update(started_at=now, ends_by=row.ends_by):
            return False
        record(
            Action.RUN_STARTED,
            by=caller,
            at=now,
            subject=f"run:{row.id}",
            details={"paths": list(row.paths), "commit": row.commit},
        )
    return True
