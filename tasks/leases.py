"""Claims that ran out: the owner is cleared, the state stays, everybody concerned is told."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db.models import QuerySet

from core.actions import Action
from core.actors import System
from core.events import Event
from orgchart.compiling import current_policy
from orgchart.models import Organisation
from orgchart.policy.compiled import Policy
from tasks.announcing import takers, tell
from tasks.models import UNDATED, Task
from tasks.rows import Row, read_row, subject_of
from tasks.vocabulary import UNFINISHED
from tasks.writing import Write, swap
from toolbox.scheduler import sweep

BATCH = 20


def release_overdue(*, now: datetime) -> int:
    """Clear owners whose lease is over or who were deactivated; returns how many were due.

    Several sweeps at once are harmless: each row is taken by one of them.
    """
    _date_claims()
    over = Task.objects.filter(lease_due_at__lte=now).order_by("lease_due_at")
    return _swept(over, now, gone=False) + _swept(_left(), now, gone=True)


def undated_claims() -> QuerySet[Task]:
    """Unfinished tasks that are owned without a due time, the longest untouched first."""
    return Task.objects.filter(UNDATED).order_by("organisation", "updated_at")


def _date_claims() -> None:
    """Claims taken while the lease was 0 last, once there is one, from their last update."""
    lasting = Organisation.objects.exclude(settings__contains={"task_lease": 0})
    some = lasting.values_list("id", flat=True)
    undated = Task.objects.filter(UNDATED, organisation_id__in=list(some)).order_by()
    for organisation_id in undated.values_list("organisation_id", flat=True).distinct():
        lasts = current_policy(organisation_id).settings["task_lease"]
        if lasts:
            claims = undated_claims().filter(organisation_id=organisation_id)
            sweep(claims, partial(_date, lasts=timedelta(seconds=lasts)), batch=BATCH)


def _date(task: Task, *, lasts: timedelta) -> None:
    Task.objects.filter(id=task.id).update(lease_due_at=task.updated_at + lasts)


def _left() -> QuerySet[Task]:
    """Unfinished tasks of agents who were deactivated."""
    return Task.objects.filter(owner__active=False, status__in=sorted(UNFINISHED)).order_by("id")


def _swept(due: QuerySet[Task], now: datetime, *, gone: bool) -> int:
    return sweep(due, lambda task: _release(task, now, gone=gone), batch=BATCH)


def _release(task: Task, now: datetime, *, gone: bool) -> None:
    policy = current_policy(task.organisation_id)
    if not gone and not policy.settings["task_lease"]:
        Task.objects.filter(id=task.id).update(lease_due_at=None)  # switched off: claims last
        return
    row = read_row(task.organisation_id, str(task.number))
    why = (
        f"{row.owner} was deactivated, so task #{row.number} is free again"
        if gone
        else f"{row.owner}'s claim on task #{row.number} ran out at "
        f"{row.lease_due_at:%Y-%m-%d %H:%M:%S} UTC without an update, so it is free again"
    )
    system = System(name="leases", organisation_id=task.organisation_id)
    event = Event.by(
        system,
        Action.TASK_LEASE_EXPIRED,
        at=now,
        subject=subject_of(policy, row.number),
        reason=why,
        kind="task",
        for_agent_id=row.owner_id,
        details={"version": row.version + 1, "owner": [row.owner, ""], "status": row.status},
    )
    cleared = Write(sets={"owner_id": None, "owner_role": "", "lease_due_at": None})
    if not swap(row, cleared, event):
        raise RuntimeError(f"task {row.number} changed under its lock")
    _tell_all(policy, row, f"{why}. It stays {row.status}.", now)


def _tell_all(policy: Policy, row: Row, why: str, now: datetime) -> None:
    late = row.owner_in(policy)
    fresh = read_row(policy.organisation_id, str(row.number))
    others = [agent for agent in takers(policy, row) if agent.id != row.owner_id]
    if late is not None and late.active:
        tell(
            policy,
            [late],
            fresh,
            action=Action.TASK_LOST,
            subject=f"Your claim on task #{row.number} ran out",
            why=f"{why} Your version {row.version} is refused from now on.",
            now=now,
        )
    if not row.waits_for:
        tell(
            policy,
            others,
            fresh,
            action=Action.TASK_FREE,
            subject=f"Task #{row.number} is free again: {row.subject}",
            why=why,
            now=now,
        )
