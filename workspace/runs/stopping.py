"""Stopping a run as a person: its programs end, its agent is told (Spec: hands 29)."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db import transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Code, refuse
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from ledger.services import record
from toolbox.wake import wake
from workspace.models import Run
from workspace.runs.rules import can_stop

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
        row.stopped_for = f"{caller.actor.partition(':')[2]}: {reason.strip()}"[:SHOWN]
        if row.started_at is None:
            row.ended_at, row.output_sha256 = now, hashlib.sha256(b"").hexdigest()
        row.save(update_fields=["stopped_for", "ended_at", "output_sha256"])
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
