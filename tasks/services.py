"""Creating, reading and updating tasks: read, decide, change in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from pydantic_core import to_json

from core.actions import Action
from core.actors import Actor
from core.database import fetch_row
from core.decision import Denied, Deny
from ledger.services import insert_event, record
from tasks import dependencies
from tasks.callers import actor_of, reader_of
from tasks.discussion import read_comments
from tasks.models import Task
from tasks.results import JsonObject, TaskResult
from tasks.rules.actors import TaskActor, enforcement_of
from tasks.rules.changes import TaskChange, change_of, subject_of, warning_event
from tasks.rules.ownership import inactive_owner
from tasks.rules.texts import initial_writers
from tasks.rules.updates import can_update
from tasks.rules.validation import (
    can_type_role,
    validate_metadata,
    validate_role,
    validate_subject,
    validate_type,
)
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import can_ask_for, can_require_role
from tasks.store import not_found, read_for, read_task, save_change, task_result
from tasks.vocabulary import ENDED, Enforcement
from toolbox.wake import wake

CREATE = """
WITH counted AS (
    INSERT INTO tasks_counter AS c (organisation_id, last) VALUES (%(organisation)s, 1)
    ON CONFLICT (organisation_id) DO UPDATE SET last = c.last + 1 RETURNING last
)
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, creator_id, created_at, updated_at,
    subject_writer, text_writers)
SELECT %(organisation)s, last, %(subject)s, %(description)s, %(active_form)s, 'pending',
    %(metadata)s::jsonb, %(required_role)s, %(task_type)s, %(created_by)s, %(creator)s,
    %(now)s, %(now)s, %(writer)s, %(writers)s::jsonb
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
    """Add a task to the list; its id is the organisation's next number (Spec: tasks 4, tasks 1).

    Raises Denied: INVALID_PARAMS for a blank subject, a role or type that does not exist,
    CONTACT_DENIED for a role that the caller may not contact, ROLE_MISMATCH for one that does not
    claim the type, NOT_FOUND for an unknown blocker.
    """
    actor = actor_of(caller)
    warnings = _require_audience(caller, actor, required_role, task_type)
    writers = initial_writers(
        actor.writer, description=description, active_form=active_form, metadata=metadata or {}
    )
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "subject": validate_subject(subject),
        "description": description,
        "active_form": active_form,
        "metadata": validate_metadata(metadata or {}),
        "required_role": validate_role(actor.policy, required_role, actor.party),
        "task_type": validate_type(task_type),
        "created_by": caller.actor,
        "creator": actor.party.id,
        "writer": actor.writer,
        "writers": to_json(writers).decode(),
        "now": now,
    }
    with transaction.atomic():
        if blocked_by:
            dependencies.lock_dependencies(caller.organisation_id)
        (number,) = fetch_row(CREATE, values)
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
        _record_warnings(warnings, caller, actor, row, now)
    return task_result(row, actor.readership, warnings)


def _require_audience(
    caller: Actor, actor: TaskActor, required_role: str | None, task_type: str | None
) -> tuple[Deny, ...]:
    """Require that the actor may ask the role, and the role claims the type; return warnings.

    Raises Denied.
    """
    role = validate_role(actor.policy, required_role, actor.party)
    caller.require(can_require_role(actor.policy, actor.party, role))
    typed = can_type_role(actor.policy, role, validate_type(task_type))
    match enforcement_of(actor.policy):
        case Enforcement.ENFORCE:
            caller.require(typed)
        case Enforcement.WARN if isinstance(typed, Deny):
            return (typed,)
    return ()


def _record_warnings(
    warnings: Sequence[Deny], caller: Actor, actor: TaskActor, row: TaskRow, now: datetime
) -> None:
    for warning in warnings:
        insert_event(warning_event(warning, caller, subject_of(actor.policy, row.number), now))


def get_task(*, caller: Actor, task_id: str, comments_cursor: str | None = None) -> TaskResult:
    """One task that the caller may read, with a page of its comments. Raises Denied NOT_FOUND."""
    actor = reader_of(caller)
    row = read_for(actor, task_id)
    result = task_result(row, actor.readership)
    comments, earlier = read_comments(row.id, actor.readership, comments_cursor)
    if comments:
        result["comments"] = comments
    if earlier is not None:
        result["comments_cursor"] = earlier
    return result


def update_task(*, caller: Actor, task_id: str, update: TaskUpdate, now: datetime) -> TaskResult:
    """Change a task (Spec: tasks 12); one statement, unless others are concerned.

    Without `expected_version` an update that another one overtook is decided again on the task as
    it is then, under its lock. Raises Denied with the rule that refused it; nothing is changed.
    """
    actor = actor_of(caller)
    if update.subject is not None:
        validate_subject(update.subject)
    concerns_others = update.changes_dependencies
    if not concerns_others:
        row = read_for(actor, task_id)
        if update.renews and actor.is_agent(row.owner_id):
            return _renew_claim(caller, actor, task_id, update, now)
        change, warnings = _decide(caller, actor, row, update, now)
        if update.releases_nothing(row) and not warnings:
            return task_result(row, actor.readership)
        concerns_others = update.status in ENDED and bool(row.blocks or row.blocked_by)
        if not concerns_others and not warnings:
            saved = save_change(row, change)
            if saved is not None:
                wake(change.event.for_agent_id)
                return task_result(saved, actor.readership)
            _require_active_owner(change)
    while True:
        try:
            with transaction.atomic():
                return _update_locked(
                    caller, actor, task_id, update, now, concerns_others=concerns_others
                )
        except _NeedsDependencyLock:
            concerns_others = True


def _renew_claim(
    caller: Actor, actor: TaskActor, task_id: str, update: TaskUpdate, now: datetime
) -> TaskResult:
    """Let a claim last for another lease; the version stays (Spec: tasks 37)."""
    with transaction.atomic():
        row = read_for(actor, task_id, lock=True)
        change, warnings = _decide(caller, actor, row, update, now)
        due = change.values.get("lease_due_at")
        if due is not None:
            Task.objects.filter(id=row.id).update(lease_due_at=due)
            details = {"version": row.version, "renewed": True}
            insert_event(replace(change.event, details=details))
        _record_warnings(warnings, caller, actor, row, now)
    return task_result(replace(row, lease_due_at=due), actor.readership, warnings)


class _NeedsDependencyLock(Exception):
    """The task got neighbours; the lock on dependencies must be taken before the task's own."""


def _decide(
    caller: Actor, actor: TaskActor, row: TaskRow, update: TaskUpdate, now: datetime
) -> tuple[TaskChange, tuple[Deny, ...]]:
    """Return what the update changes, and the warnings. Raises Denied."""
    found = can_update(actor, row, update)
    caller.require(found.decision)
    warnings = found.warnings
    if update.changes_audience:
        role = row.required_role if update.required_role is None else update.required_role
        kind = row.task_type if update.task_type is None else update.task_type
        warnings += _require_audience(caller, actor, role or None, kind or None)
        if update.subject is None:
            caller.require(can_ask_for(actor.policy, row.subject_writer, role))
    return change_of(caller, actor, row, update, now), warnings


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
    row = read_for(actor, task_id, lock=True)
    named = dependencies.read_neighbours(actor, row, update.add_blocks, update.add_blocked_by)
    update = replace(
        update,
        new_blockers=named.new_open_blockers,
        unseen=dependencies.unseen_by_owner(named, row, actor.policy),
    )
    change, warnings = _decide(caller, actor, row, update, now)
    releases = update.status in ENDED and bool(row.blocks or row.blocked_by)
    if releases and not concerns_others:
        raise _NeedsDependencyLock
    if update.releases_nothing(row):
        _record_warnings(warnings, caller, actor, row, now)
        return task_result(row, actor.readership, warnings)
    saved = save_change(row, change)
    if saved is None:
        _require_active_owner(change)
        raise RuntimeError(f"task {task_id} changed under its lock")
    if releases:
        dependencies.release_dependents(row, update.status, actor=actor, caller=caller, now=now)
    if update.changes_dependencies:
        warnings += dependencies.require_joinable(named, row, actor)
        dependencies.add_dependencies(named, row, actor=actor, caller=caller, now=now)
        saved = read_task(caller.organisation_id, task_id)
    _record_warnings(warnings, caller, actor, row, now)
    wake(change.event.for_agent_id)
    return task_result(saved, actor.readership, warnings)


def _require_active_owner(change: TaskChange) -> None:
    """Refuse a new owner that was deactivated after the policy was read. Raises Denied."""
    if change.owner is None:
        return
    found = fetch_row("SELECT active FROM orgchart_agent WHERE id = %s", [change.owner.id])
    if found is None or not found[0]:
        raise Denied(inactive_owner(change.owner.handle))
