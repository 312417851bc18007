"""Creating, reading and updating tasks: read, decide, change in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Denied, Deny
from ledger.services import insert_event, record
from tasks import dependencies
from tasks.callers import actor_of
from tasks.discussion import last_comments
from tasks.results import JsonObject, TaskResult
from tasks.rules.actors import TaskActor
from tasks.rules.changes import TaskChange, change_of, subject_of, warning_event
from tasks.rules.ownership import inactive_owner
from tasks.rules.updates import can_update
from tasks.rules.validation import validate_metadata, validate_role, validate_type
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.store import not_found, read_task, save_change, task_result
from tasks.vocabulary import ENDED
from toolbox.wake import wake

CREATE = """
WITH counted AS (
    INSERT INTO tasks_counter AS c (organisation_id, last) VALUES (%(organisation)s, 1)
    ON CONFLICT (organisation_id) DO UPDATE SET last = c.last + 1 RETURNING last
)
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, creator_id, created_at, updated_at)
SELECT %(organisation)s, last, %(subject)s, %(description)s, %(active_form)s, 'pending',
    %(metadata)s::jsonb, %(required_role)s, %(task_type)s, %(created_by)s, %(creator)s,
    %(now)s, %(now)s
FROM counted RETURNING number
"""


def create_task(
    *,
    caller: Actor,
    subject: str,
    now: datetime,
    description: str = "",
    active_form: str = "",
    metadata: JsonObject | None = None,
    required_role: str | None = None,
    task_type: str | None = None,
    blocked_by: Sequence[str] = (),
) -> TaskResult:
    """Add a task to the list; its id is the organisation's next number (seed 001 §3).

    Raises Denied: INVALID_PARAMS for a role or type that does not exist, NOT_FOUND for an unknown
    blocker.
    """
    actor = actor_of(caller)
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "subject": subject,
        "description": description,
        "active_form": active_form,
        "metadata": validate_metadata(metadata or {}),
        "required_role": validate_role(actor.policy, required_role),
        "task_type": validate_type(task_type),
        "created_by": caller.actor,
        "creator": actor.agent.id if actor.agent else None,
        "now": now,
    }
    with transaction.atomic():
        if blocked_by:
            dependencies.lock_dependencies(caller.organisation_id)
        with connection.cursor() as cursor:
            cursor.execute(CREATE, values)
            number = cursor.fetchone()[0]
        if str(number) in blocked_by:  # the caller named this id before it existed
            raise not_found(str(number))
        record(
            Action.TASK_CREATED,
            by=caller,
            at=now,
            subject=subject_of(actor.policy, number),
            kind="task",
            details={
                "requiredRole": required_role,
                "taskType": task_type,
                "blockedBy": list(blocked_by),
            },
        )
        row = read_task(caller.organisation_id, str(number))
        if blocked_by:
            named = dependencies.read_neighbours(actor, row, (), blocked_by)
            dependencies.require_joinable(named, row, actor)
            dependencies.add_dependencies(named, row, actor=actor, caller=caller, now=now)
            row = read_task(caller.organisation_id, str(number))
    return task_result(row)


def get_task(*, caller: Actor, task_id: str) -> TaskResult:
    """One task of the caller's organisation, with its last comments. Raises Denied NOT_FOUND."""
    row = read_task(caller.organisation_id, task_id)
    result = task_result(row)
    comments = last_comments(row.id)
    if comments:
        result["comments"] = comments
    return result


def update_task(*, caller: Actor, task_id: str, update: TaskUpdate, now: datetime) -> TaskResult:
    """Change a task by the rules of seed 001 §5; one statement, unless others are concerned.

    Without `expected_version` an update that another one overtook is decided again on the task as
    it is then, under its lock. Raises Denied with the rule that refused it; nothing is changed.
    """
    actor = actor_of(caller)
    concerns_others = update.changes_dependencies
    if not concerns_others:
        row = read_task(caller.organisation_id, task_id)
        change, warnings = _decide(caller, actor, row, update, now)
        concerns_others = update.status in ENDED and bool(row.blocks or row.blocked_by)
        if not concerns_others and not warnings:
            saved = save_change(row, change)
            if saved is not None:
                wake(change.event.for_agent_id)
                return task_result(saved)
            _require_active_owner(change)
    while True:
        try:
            with transaction.atomic():
                return _update_locked(
                    caller, actor, task_id, update, now, concerns_others=concerns_others
                )
        except _NeedsDependencyLock:
            concerns_others = True


class _NeedsDependencyLock(Exception):
    """The task got neighbours; the lock on dependencies must be taken before the task's own."""


def _decide(
    caller: Actor, actor: TaskActor, row: TaskRow, update: TaskUpdate, now: datetime
) -> tuple[TaskChange, tuple[Deny, ...]]:
    """Return what the update changes, and the warnings. Raises Denied."""
    found = can_update(actor, row, update)
    caller.require(found.decision)
    return change_of(caller, actor, row, update, now), found.warnings


def _update_locked(
    caller: Actor,
    actor: TaskActor,
    task_id: str,
    update: TaskUpdate,
    now: datetime,
    *,
    concerns_others: bool,
) -> TaskResult:
    if concerns_others:
        dependencies.lock_dependencies(caller.organisation_id)
    row = read_task(caller.organisation_id, task_id, lock=True)
    named = dependencies.read_neighbours(actor, row, update.add_blocks, update.add_blocked_by)
    update = replace(update, new_blockers=named.new_open_blockers)
    change, warnings = _decide(caller, actor, row, update, now)
    releases = update.status in ENDED and bool(row.blocks or row.blocked_by)
    if releases and not concerns_others:
        raise _NeedsDependencyLock
    saved = save_change(row, change)
    if saved is None:
        _require_active_owner(change)
        raise RuntimeError(f"task {task_id} changed under its lock")
    for warning in warnings:
        insert_event(warning_event(warning, caller, subject_of(actor.policy, row.number), now))
    if releases:
        dependencies.release_dependents(row, update.status, actor=actor, now=now)
    if update.changes_dependencies:
        dependencies.require_joinable(named, row, actor)
        dependencies.add_dependencies(named, row, actor=actor, caller=caller, now=now)
        saved = read_task(caller.organisation_id, task_id)
    wake(change.event.for_agent_id)
    return task_result(saved)


def _require_active_owner(change: TaskChange) -> None:
    """Refuse a new owner that was deactivated after the policy was read. Raises Denied."""
    if change.owner is None:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT active FROM orgchart_agent WHERE id = %s", [change.owner.id])
        found = cursor.fetchone()
    if found is None or not found[0]:
        raise Denied(inactive_owner(change.owner.handle))
