"""The scheduled job of tasks: expired claims lose their owner; the state stays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from core.actions import Action
from core.actors import Actor, System
from core.database import planned_for_values, rows_of_array
from core.decision import Code, Denied, refuse
from core.events import Event
from core.limits import BIGGEST_VERSION
from ledger.services import insert_events
from orgchart.models import Agent as AgentRow
from orgchart.models import Organisation
from orgchart.pauses.services import paused_until
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy_cache import current_policy
from orgchart.services import agents_activated
from tasks.callers import charge_agent
from tasks.dependencies import ROWS_OF_NOTICE
from tasks.models import UNDATED, Task
from tasks.notifications import notify_agents, notify_free, possible_owners
from tasks.rules.changes import TaskChange, lease_due_at, subject_of
from tasks.rules.values import TaskRow
from tasks.store import read_short_tasks, read_task, save_change
from tasks.vocabulary import UNFINISHED, ListIndex
from toolbox.scheduler import answers_of_each, scheduled_job, sweep

BATCH = 20
MOST_DATED = 1000
"""Claims of one agent that get another due time at once: some 0.1 s."""
RELEASED = {
    "owner_id": None,
    "owner_role": "",
    "lease_due_at": None,
    "is_assigned": False,
    "approved_by": "",
    "approved_at": None,
}
"""A task without its owner; no lead took it away, so an approval ends too (Spec: tasks 45)."""
MOST_FREED = 50_000
"""Tasks that are freed while an agent is activated again: some 10 s, and 100 MB."""
MOST_TOLD = 1000
"""Tasks that an agent left of which others are told at once, as at the end of a blocker; they find
the rest with task_recommend."""


class Held(NamedTuple):
    """What is told of a task that an agent held."""

    id: int
    number: int
    status: str
    version: int
    owner_id: int


@scheduled_job("leases", every=5)
def release_overdue(now: datetime) -> int:
    """Clear owners whose lease is over or who were deactivated; return how many were due.

    Several runs at once are harmless: one of them takes each row.
    """
    _date_claims(now)
    changeable = Task.objects.filter(version__lt=BIGGEST_VERSION)
    expired = changeable.filter(lease_due_at__lte=now).order_by("lease_due_at")
    # In the order of the agents that left, of which each has a range of an index of tasks.
    left = changeable.filter(status__in=sorted(UNFINISHED), organisation=F("owner__organisation"))
    left = left.filter(owner__in=_who_left(changeable)).order_by("owner_id")
    return sum(
        sweep(rows, partial(release, now=now), batch=BATCH, of="organisation")
        for rows, release in ((expired, _release_expired), (left, _release_left))
    )


@agents_activated.join
def release_what_was_left(agent_ids: Sequence[int], caller: Actor, now: datetime) -> None:
    """Free the tasks that agents which are activated again left, where no run of the job did.

    There may be tens of thousands, and the change of the policy waits: one statement frees all, and
    each agent that could take one is told once, of the first MOST_TOLD. Raises Denied
    INVALID_TRANSITION where there are more than MOST_FREED: the job frees them first.
    """
    rows = _held(_left_by(agent_ids).select_for_update(), MOST_FREED + 1)
    if len(rows) > MOST_FREED:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"more than {MOST_FREED} tasks that were left are not free yet",
            "wait until the scheduler has freed them, then do it again",
            rule="an agent that is activated again owns nothing that it left (spec: tasks 39)",
        )
    _free(rows, current_policy(caller.organisation_id), now)


def _left_by(agent_ids: Sequence[int]) -> QuerySet[Task]:
    return Task.objects.filter(
        owner_id__in=rows_of_array(agent_ids, "bigint"),
        status__in=sorted(UNFINISHED),
        version__lt=BIGGEST_VERSION,
    ).order_by("id")


def _held(tasks: QuerySet[Task], most: int) -> list[Held]:
    found = tasks.values_list("id", "number", "status", "version", "owner_id")
    return [Held(*row) for row in found[:most]]


def _free(rows: Sequence[Held], policy: Policy, now: datetime) -> None:
    """Free locked tasks of agents that left, by one statement."""
    if not rows:
        return
    freed = Task.objects.filter(id__in=rows_of_array([row.id for row in rows], "bigint"))
    freed.update(**RELEASED, version=F("version") + 1, updated_at=now)
    owners = {row.owner_id: policy.by_id[row.owner_id].handle for row in rows}
    insert_events(
        _released(policy, row, owners[row.owner_id], _why_left(owners[row.owner_id], row), now)
        for row in rows
    )
    told = sorted(row.number for row in rows)[:MOST_TOLD]
    notify_free(read_short_tasks(policy.organisation_id, told), policy=policy, now=now)


def _who_left(changeable: QuerySet[Task]) -> list[int]:
    """The deactivated agents that own unfinished tasks.

    Each is asked for one task by the index that has this order. A join would read all tasks of the
    installation, every 5 s, where most of them are unfinished.
    """
    of_agent = changeable.filter(owner=OuterRef("pk"), organisation=OuterRef("organisation"))
    of_agent = of_agent.order_by("subject_writer", F("number") * -ListIndex.OWNER)
    own = (Subquery(of_agent.filter(status=one).values("id")[:1]) for one in sorted(UNFINISHED))
    left = AgentRow.objects.filter(active=False).annotate(left=Coalesce(*own)).exclude(left=None)
    with planned_for_values():
        return list(left.order_by("id").values_list("id", flat=True))


def undated_claims() -> QuerySet[Task]:
    """Claims in progress without a due time, the longest unchanged first."""
    return Task.objects.filter(UNDATED).order_by("organisation", "updated_at")


def _date_claims(now: datetime) -> None:
    """Give claims that began while the organisation's lease was 0 a whole lease from now on.

    Their owners had nothing to renew before (Spec: tasks 37).
    """
    with_lease = Organisation.objects.filter(settings__has_key="task_lease").exclude(
        settings__contains={"task_lease": 0}
    )
    # One of each by the index. A join would read the claims of all organisations without a lease;
    # with "=" for the range, no order would lead to the index.
    own = Task.objects.filter(
        UNDATED, organisation__gte=OuterRef("pk"), organisation__lte=OuterRef("pk")
    ).order_by("organisation_id")
    found = answers_of_each(
        with_lease.annotate(undated=Subquery(own.values("id")[:1])).exclude(undated=None),
        lambda organisation: lease_due_at(current_policy(organisation.id), now),
    )
    due_at = {organisation.id: due for organisation, due in found.items() if due is not None}
    sweep(
        undated_claims().filter(organisation__in=[*due_at]),
        lambda task: _date_claim(task, due=due_at[task.organisation_id]),
        batch=BATCH,
        of="organisation",
    )


def _date_claim(task: Task, *, due: datetime) -> None:
    Task.objects.filter(id=task.id).update(lease_due_at=due)


def _release_expired(task: Task, *, now: datetime) -> None:
    """Free a claim, unless leases are switched off or its owner was paused in the last one.

    A paused owner cannot renew a claim, which has a whole lease from the end of the pause on
    (Spec: modes 28). It is dated here, not when the agents are resumed: there may be a million
    claims, which would have to be written while a person waits.
    """
    policy = current_policy(task.organisation_id)
    paused = paused_until(
        organisation_id=task.organisation_id, agent_id=task.owner_id or 0, now=now
    )
    due = paused and lease_due_at(policy, paused)
    if policy.settings["task_lease"] and (due is None or due <= now):
        _release(task, policy, now=now, was_deactivated=False)
    else:
        _date_due_claims(task.owner_id, due, now)


def _date_due_claims(owner_id: int | None, due: datetime | None, now: datetime) -> None:
    """Give the claims of an agent that are due another time, MOST_DATED at once."""
    claims = Task.objects.filter(owner_id=owner_id, lease_due_at__lte=now).order_by("lease_due_at")
    free = claims.select_for_update(skip_locked=True).values_list("id", flat=True)
    with planned_for_values():
        ids = list(free[:MOST_DATED])
    Task.objects.filter(id__in=rows_of_array(ids, "bigint")).update(lease_due_at=due)


def _release_left(task: Task, *, now: datetime) -> None:
    """Free a task of an agent that left; MOST_TOLD at once where it left more than these.

    One by one, a million would take hours, and the agent is not activated again before their end.
    """
    policy = current_policy(task.organisation_id)
    left = _left_by([task.owner_id or 0])
    with planned_for_values():
        if left.order_by()[MOST_TOLD : MOST_TOLD + 1].exists():
            _free(_held(left.select_for_update(skip_locked=True), MOST_TOLD), policy, now)
        is_left = left.filter(id=task.id).exists()
    if is_left:
        _release(task, policy, now=now, was_deactivated=True)


def _release(task: Task, policy: Policy, *, now: datetime, was_deactivated: bool) -> None:
    row = read_task(task.organisation_id, str(task.number))
    if was_deactivated:  # which no other agent is told (Spec: tasks 61)
        why = _why_left(row.owner or "", row)
        told = f"Task #{row.number} has no owner any more"
    else:
        why = told = (
            f"{row.owner}'s claim on task #{row.number} expired at "
            f"{row.lease_due_at:%Y-%m-%d %H:%M:%S} UTC without an update, so it is free again"
        )
    event = _released(policy, row, row.owner or "", why, now)
    released = save_change(
        row,
        TaskChange(event=event, values=RELEASED),
    )
    if released is None:
        raise RuntimeError(f"task {row.number} changed under its lock")
    _notify_of_release(policy, row, released, f"{told}. It stays {row.status}.", now)


def _why_left(owner: str, row: TaskRow | Held) -> str:
    return f"{owner} was deactivated, so task #{row.number} is free again"


def _released(policy: Policy, row: TaskRow | Held, owner: str, why: str, now: datetime) -> Event:
    return Event.by(
        System(name="leases", organisation_id=policy.organisation_id),
        Action.TASK_LEASE_EXPIRED,
        at=now,
        subject=subject_of(policy, row.number),
        reason=why,
        kind="task",
        for_agent_id=row.owner_id,
        details={"version": row.version + 1, "owner": [owner, ""], "status": str(row.status)},
    )


def _notify_of_release(
    policy: Policy, row: TaskRow, released: TaskRow, why: str, now: datetime
) -> None:
    late = row.owner_in(policy)
    if late is not None and late.active:
        notify_agents(
            policy,
            [late],
            released,
            action=Action.TASK_LOST,
            subject=f"Your claim on task #{row.number} expired",
            why=lambda _: f"{why} Your version {row.version} is refused from now on.",
            now=now,
        )
    if row.waits_for:
        return
    others = [agent for agent in possible_owners(policy, row) if agent.id != row.owner_id]
    if others and (late is None or _has_room_for(len(others), late, policy, now)):
        notify_agents(
            policy,
            others,
            released,
            action=Action.TASK_FREE,
            subject=f"Task #{row.number} is free again",
            why=lambda _: why,
            now=now,
        )


def _has_room_for(notices: int, late: Agent, policy: Policy, now: datetime) -> bool:
    """Count the notices for the agent that did not keep its claim (Spec: settings 6).

    Without room for them the others find the task with task_recommend.
    """
    try:
        charge_agent(late.id, policy, notices * ROWS_OF_NOTICE, now)
    except Denied:
        return False
    return True
