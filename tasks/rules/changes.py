"""What an allowed update changes: columns, event, and what must hold when it is saved; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.actions import Action
from core.actors import Actor
from core.decision import Allow, Deny
from core.events import Event
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Board
from tasks.rules.actors import TaskActor
from tasks.rules.approval import keeps_approval
from tasks.rules.ownership import can_take, changes_owner, leads_task, new_owner
from tasks.rules.texts import changed_writers
from tasks.rules.validation import validate_metadata
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.vocabulary import ENDED, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """A change of one task and its event.

    `values` are columns; `status`, where given, is a transition. `owner` must be active when the
    change is saved. `dependents`, where given, is the number that must still wait for the task:
    a new dependency does not change the version of the task that blocks. `experience_of` is the
    agent that gains experience.
    """

    event: Event
    values: Mapping[str, Any] = field(default_factory=dict)
    status: Status | None = None
    owner: Agent | None = None
    dependents: int | None = None
    experience_of: int | None = None


def change_of(
    caller: Actor, actor: TaskActor, task: TaskRow, update: TaskUpdate, now: datetime
) -> TaskChange:
    """Lay out what an allowed update changes. Raises Denied for metadata that is too large."""
    values: dict[str, Any] = dict(update.content)
    if update.metadata is not None:
        values["metadata"] = merge_metadata(task.metadata, update.metadata)
        validate_metadata(values["metadata"])
    values |= changed_writers(task, update, actor.writer)
    takes = changes_owner(actor, task, update)
    owner = new_owner(actor, update) if takes else None
    if takes:
        values |= _ownership(actor, task, update, owner, now)
    elif update.owner and not actor.is_agent(task.owner_id):
        values["is_assigned"] = True  # a lead or manager confirms the owner (Spec: tasks 37)
    if update.status is not None:
        values |= _progress(actor, task, update.status, values.get("owner_id"), now)
    values |= _lease(actor, task, update, values, now)
    works = update.status in MOVES or (task.status is not Status.PENDING and update.reworks)
    workers = [owner] if owner else []
    workers += [actor.party] if works and isinstance(actor.party, Agent) else []
    added = {worker.id for worker in workers} - set(task.workers)
    if added:
        values["workers"] = [*task.workers, *sorted(added)]
    if task.approved_at is not None and not keeps_approval(actor, task, update):
        values |= {"approved_by": "", "approved_at": None}
    return TaskChange(
        event=_event(caller, actor, task, update, owner, now, takes=takes),
        values=values,
        status=update.status,
        owner=owner,
        dependents=task.dependents if update.status in ENDED else None,
        experience_of=values.get("completed_by_id"),
    )


def _ownership(
    actor: TaskActor, task: TaskRow, update: TaskUpdate, owner: Agent | None, now: datetime
) -> dict[str, Any]:
    if owner is None:
        return {"owner_id": None, "owner_role": "", "is_assigned": False}
    return {
        "owner_id": owner.id,
        "owner_role": owner.role,
        "cross_role": task.required_role not in ("", owner.role),
        "claimed_at": now,
        "is_assigned": update.force or not actor.is_agent(owner.id),
    }


def _progress(
    actor: TaskActor, task: TaskRow, status: Status, owner_id: int | None, now: datetime
) -> dict[str, Any]:
    if status is Status.IN_PROGRESS:
        return {"started_at": now}
    if status is Status.COMPLETED:
        worker = owner_id or task.owner_id or _worker_of_unowned(actor, task)
        return {"completed_at": now, "completed_by_id": worker}
    return {}


def _worker_of_unowned(actor: TaskActor, task: TaskRow) -> int | None:
    """The agent that completes a task without owner; none for a lead that could not take it.

    A lead, as a person, may end what others did; that is not its work (Spec: tasks 58).
    """
    agent = actor.party
    if isinstance(agent, Board):
        return None
    taken = can_take(actor.policy, agent, task.required_role, task.task_type)
    return agent.id if isinstance(taken, Allow) or not leads_task(actor, task) else None


def _lease(
    actor: TaskActor,
    task: TaskRow,
    update: TaskUpdate,
    values: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """A claim in progress lasts for the lease (Spec: tasks 37); updates by the owner renew it."""
    owner_id = values.get("owner_id", task.owner_id)
    is_working = (update.status or task.status) is Status.IN_PROGRESS
    if owner_id is None or not is_working or values.get("is_assigned", task.is_assigned):
        return {"lease_due_at": None}  # the scheduled job may date a claim after it was read
    begins = "owner_id" in values or update.status is not None
    if not begins and not actor.is_agent(owner_id):
        return {}
    return {"lease_due_at": lease_due_at(actor.policy, now)}


def lease_due_at(policy: Policy, now: datetime) -> datetime | None:
    """When a claim that is renewed now expires; None: never."""
    seconds = policy.settings["task_lease"]
    return now + timedelta(seconds=seconds) if seconds else None


def _event(
    caller: Actor,
    actor: TaskActor,
    task: TaskRow,
    update: TaskUpdate,
    owner: Agent | None,
    now: datetime,
    *,
    takes: bool,
) -> Event:
    action = ACTIONS.get(update.status) if update.status else None
    if action is None:
        action = Action.TASK_UPDATED
        if takes:
            action = Action.TASK_CLAIMED if owner else Action.TASK_RELEASED
    details: dict[str, Any] = {"version": task.version + 1}
    if update.status is not None:
        details["status"] = [task.status.value, update.status.value]
    if takes:
        details["owner"] = [task.owner or "", owner.handle if owner else ""]
        details["requiredRole"] = task.required_role
    fields = sorted([*update.content, *(["metadata"] if update.metadata is not None else [])])
    if fields:
        details["fields"] = fields
    notified_id = owner.id if owner and not actor.is_agent(owner.id) else task.owner_id
    if actor.is_agent(notified_id):
        notified_id = None
    unseen = update.unseen if notified_id is not None else ()
    for name, ids in (("addBlocks", update.add_blocks), ("addBlockedBy", update.add_blocked_by)):
        if ids:
            details[name] = [one for one in ids if one not in unseen]
    if update.force:
        details["forceAssign"] = True
    return Event.by(
        caller,
        action,
        at=now,
        subject=subject_of(actor.policy, task.number),
        kind="task",
        for_agent_id=notified_id,
        details=details,
    )


MOVES = frozenset({Status.IN_PROGRESS, Status.COMPLETED})
ACTIONS: Mapping[Status, Action] = {
    Status.IN_PROGRESS: Action.TASK_STARTED,
    Status.COMPLETED: Action.TASK_COMPLETED,
    Status.DELETED: Action.TASK_DELETED,
}


def warning_event(refused: Deny, caller: Actor, subject: str, now: datetime) -> Event:
    """The event of what `enforce` would have refused and `warn` let pass (Spec: tasks 36)."""
    return Event.by(
        caller,
        Action.TASK_WARNED,
        at=now,
        subject=subject,
        code=refused.code.value,
        reason=refused.message,
        kind="task",
        for_agent_id=getattr(getattr(caller, "agent", None), "id", None),
        details={"rule": refused.rule, "enforcement": "warn"},
    )


def subject_of(policy: Policy, number: int) -> str:
    """The ledger's name of a task."""
    return f"task:{policy.organisation}/{number}"


def merge_metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata after an update: given keys replace, null removes, the others stay."""
    both = {**old, **new}
    return {key: value for key, value in both.items() if value is not None or key not in new}
