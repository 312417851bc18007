"""Stopping runs: one as a person (Spec: hands 29), all of a process that ends (hands 26)."""

from __future__ import annotations

import hashlib
import time
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Least

from core.actions import Action
from core.actors import Actor
from core.database import database_now, needs_transaction
from core.decision import Code, refuse
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from ledger.services import record
from toolbox.wake import wake
from workspace.models import Run
from workspace.runs import queue
from workspace.runs.rules import can_stop

PATIENCE = 3.0
"""Seconds that runs have to end with their process."""
PROCESS_ENDS = "the installation was stopped or started again"
NOTHING_PRINTED = hashlib.sha256(b"").hexdigest()
SHOWN = 150
"""Characters of the reason that the row and the answer of the call have; the event has it all."""


def stop_run(*, run_id: int, caller: Actor, reason: str, now: datetime) -> None:
    """End a run that is under way or waits; the process that watches it sees this in a second.

    Raises Denied NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND for another organisation's
    run, INVALID_TRANSITION for one that has ended.
    """
    require_deed(caller, Deed.STOP_RUN, reason=reason)
    with transaction.atomic():
        rows = Run.objects.select_for_update().filter(organisation_id=caller.organisation_id)
        row = rows.filter(id=run_id).first()
        if row is None:
            raise refuse(
                Code.NOT_FOUND,
                f"there is no run {run_id}",
                "look at the list of runs",
                rule="people stop runs (spec: hands 29)",
            )
        has_ended = row.ended_at is not None or row.ends_by <= now
        caller.require(can_stop(row.id, has_ended=has_ended, stopped_for=row.stopped_for))
        by = f"{caller.actor.partition(':')[2]}: {reason.strip()}"[:SHOWN]
        _stop(rows.filter(id=row.id), by, now)
        record(
            Action.RUN_STOPPED,
            by=caller,
            at=now,
            subject=f"run:{row.id}",
            reason=reason,
            for_agent_id=row.agent_id,
            kind="run",
            details={"run": str(row.id), "tool": row.tool},
        )
        record_intervention(
            caller,
            deed=Deed.STOP_RUN,
            subject=f"run:{row.id}",
            trigger_condition="run running" if row.started_at else "run waiting",
            action_taken="stop_run",
            reason=reason,
            now=now,
        )
        wake(row.agent_id)


def stop_own_runs() -> None:
    """End what this process runs, and what waits in it for its turn, because it ends itself.

    Waits PATIENCE at most until their watchers have recorded how they ended.
    """
    ids = [row.id for row in queue.OWN]
    if not ids:
        return
    rows = Run.objects.filter(id__in=ids, ended_at=None)
    with transaction.atomic():
        _stop(rows, PROCESS_ENDS, database_now())
    until = time.monotonic() + PATIENCE
    while rows.exists() and time.monotonic() < until:
        time.sleep(queue.LOOK_EVERY)


@needs_transaction
def _stop(rows: QuerySet[Run], reason: str, now: datetime) -> None:
    """Stop runs that no one has stopped yet. One that waits has ended with this.

    One that runs is ended by its watcher, which looks each second; where its process is gone, it
    holds its place for GRACE.
    """
    rows = rows.filter(ended_at=None, stopped_for="")
    rows.filter(started_at=None).update(
        stopped_for=reason, ended_at=now, output_sha256=NOTHING_PRINTED
    )
    rows.update(stopped_for=reason, ends_by=Least("ends_by", now + queue.GRACE))
