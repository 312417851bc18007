"""What people take back from agents in the task list: a claim, an approval (Spec: people 32)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actors import Person
from core.blank import is_blank
from core.decision import Code, Denied, refuse
from core.interventions import record_intervention
from core.people import require_still
from core.permissions import Deed, reason_missing, require_deed
from tasks.callers import reader_of
from tasks.dependencies import lock_dependencies
from tasks.discussion import approve_task, comment_task
from tasks.results import TaskResult
from tasks.rules.changes import subject_of
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.services import update_task
from tasks.store import read_for
from tasks.vocabulary import Status


def release_by_person(
    *, person: Person, task_id: str, reason: str, expected_version: int | None, now: datetime
) -> TaskResult:
    """Take a task from its owner, so that another agent can claim it; its state stays.

    The reason is a comment that the next owner reads. Raises Denied: NOT_YOURS, INVALID_PARAMS
    without a reason, NOT_FOUND, INVALID_TRANSITION for a task without an owner, VERSION_MISMATCH.
    """
    require_deed(person, Deed.RELEASE_TASK, reason=reason)
    with transaction.atomic():
        row = read_for(reader_of(person), task_id, lock=True)
        if row.owner_id is None:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"Task #{row.number} has no owner.",
                "reload its page; another agent can claim it",
                rule="release (spec: people 32)",
            )
        _record(person, row, _action(Deed.RELEASE_TASK), _held(row), reason, now)
        update = TaskUpdate(owner="", expected_version=expected_version)
        released = update_task(caller=person, task_id=task_id, update=update, now=now)
        comment_task(caller=person, task_id=task_id, body=f"Released: {reason}", now=now)
    return released


def move_by_person(
    *,
    person: Person,
    task_id: str,
    status: Status,
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> TaskResult:
    """Move a task to another state. Of a task that an agent holds, and of every task that is
    deleted, this takes something back: it needs a reason and is an intervention.

    The reason is a comment. Raises Denied: NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND,
    INVALID_TRANSITION, VERSION_MISMATCH.
    """
    require_deed(person, Deed.MANAGE_TASK)
    with transaction.atomic():
        # Before the task's own: who joins tasks takes them in this order, too.
        lock_dependencies(person.organisation_id)
        require_still(person)
        row = read_for(reader_of(person), task_id, lock=True)
        if takes_back(row.owner, status):
            if is_blank(reason):
                raise Denied(reason_missing(Deed.MANAGE_TASK))
            _record(person, row, f"move_task_{status}", _held(row), reason, now)
        # A deleted task takes no comments.
        if row.status != Status.DELETED and not is_blank(reason):
            comment_task(caller=person, task_id=task_id, body=reason, now=now)
        update = TaskUpdate(status=status, expected_version=expected_version)
        return update_task(caller=person, task_id=task_id, update=update, now=now)


def takes_back(owner: str | None, status: Status) -> bool:
    """Whether moving a task of this owner to this state takes something back (people 32)."""
    return bool(owner) or status is Status.DELETED


def _action(deed: Deed) -> str:
    """What the intervention calls a deed."""
    return deed.permission.partition(".")[2]


def _held(row: TaskRow) -> str:
    return f"{row.status} by {row.owner}" if row.owner else f"{row.status}, no owner"


def withdraw_approval_by_person(
    *, person: Person, task_id: str, reason: str, expected_version: int | None, now: datetime
) -> TaskResult:
    """Withdraw the approval of a task's work; the reason is a comment.

    Raises Denied: NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND, INVALID_TRANSITION for a
    task that is not approved or has ended, VERSION_MISMATCH.
    """
    require_deed(person, Deed.WITHDRAW_TASK_APPROVAL, reason=reason)
    with transaction.atomic():
        row = read_for(reader_of(person), task_id, lock=True)
        if row.approved_at is None:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"Task #{row.number} is not approved.",
                "reload its page",
                rule="approval (spec: people 32)",
            )
        approved = f"approved by {row.approved_by}"
        _record(person, row, _action(Deed.WITHDRAW_TASK_APPROVAL), approved, reason, now)
        return approve_task(
            caller=person,
            task_id=task_id,
            approve=False,
            comment=reason,
            expected_version=expected_version,
            now=now,
        )


def _record(
    person: Person, row: TaskRow, action: str, condition: str, reason: str, now: datetime
) -> None:
    record_intervention(
        person,
        deed=Deed.MANAGE_TASK,
        subject=subject_of(reader_of(person).policy, row.number),
        trigger_condition=condition,
        action_taken=action,
        reason=reason,
        now=now,
    )
