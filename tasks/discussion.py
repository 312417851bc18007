"""Comments on a task, and the approval that some types need."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from django.db import transaction

from core import paging
from core.actions import Action
from core.actors import Actor, Person
from core.decision import Deny
from core.events import Event
from core.people import require_still
from core.permissions import Deed, PeopleGroup
from ledger.services import insert_event, record
from tasks.callers import actor_of
from tasks.models import Comment
from tasks.results import CommentLine, CommentResult, TaskResult
from tasks.rules.actors import TaskActor
from tasks.rules.approval import can_approve
from tasks.rules.changes import TaskChange, subject_of, warning_event
from tasks.rules.ownership import can_comment
from tasks.rules.updates import can_apply_to_version, effect_of
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import Readership, readership_of
from tasks.store import read_for, save_change, task_result
from tasks.vocabulary import Enforcement
from toolbox.wake import wake

NOTE = "[HUMAN_NOTE]"
MAX_COMMENTS = 50
"""Comments on one page, the last ones first."""


def comment_task(*, caller: Actor, task_id: str, body: str, now: datetime) -> CommentResult:
    """Add a comment; neither the task's version nor its lease changes (Spec: tasks 46).

    An observer's comment is marked as a human's note. Raises Denied.
    """
    actor, body = _actor_and_body(caller, body)
    row = read_for(actor, task_id)
    caller.require(can_comment(actor, row))
    notified_id = _notified(actor, row)
    with transaction.atomic():
        comment = Comment.objects.create(
            task_id=row.id, author=caller.actor, writer=actor.writer, body=body, created_at=now
        )
        record(
            Action.TASK_COMMENTED,
            by=caller,
            at=now,
            subject=subject_of(actor.policy, row.number),
            kind="task",
            for_agent_id=notified_id,
            details={"comment": comment.id},
        )
        wake(notified_id)
    return {
        "commentId": str(comment.id),
        "taskId": str(row.number),
        "author": comment.author,
        "body": body,
        "createdAt": now,
    }


def _notified(actor: TaskActor, row: TaskRow) -> int | None:
    """The owner, or of its own comment the creator, if that agent may read task and comment."""
    agent_id = row.creator_id if actor.is_agent(row.owner_id) else row.owner_id
    reader = actor.policy.by_id.get(agent_id or 0)
    if reader is None:
        return None
    reads = readership_of(actor.policy, reader)
    return reader.id if reads.covers_task(row) and reads.covers(actor.writer) else None


def _actor_and_body(caller: Actor, body: str) -> tuple[TaskActor, str]:
    is_marked = isinstance(caller, Person) and is_note(caller.groups)
    return actor_of(caller, Deed.COMMENT_TASK), f"{NOTE} {body}" if is_marked else body


def is_note(groups: Container[str]) -> bool:
    """Whether what a person of these groups writes is marked as a note: the Board's is not."""
    return PeopleGroup.BOARD not in groups


def read_comments(
    row_id: int, reads: Readership, cursor: str | None = None
) -> tuple[list[CommentLine], str | None]:
    """The last comments that the reader may read, oldest first, and the cursor of those before.

    Raises Denied INVALID_PARAMS for a cursor that no answer gave.
    """
    place = paging.number(cursor)
    found = Comment.objects.filter(task_id=row_id).order_by("-id")
    if place is not None:
        found = found.filter(id__lt=place)
    floor = None
    if reads.ids is not None:
        floor = paging.floor_of(found)
        found = found.filter(writer__in=reads.ids, id__gte=floor or 0)
    page, earlier = paging.cut(list(found[: MAX_COMMENTS + 1]), MAX_COMMENTS, lambda one: one.id)
    if earlier is None and floor is not None:
        earlier = paging.encode(str(floor))
    lines: list[CommentLine] = [
        {"author": one.author, "body": one.body, "createdAt": one.created_at}
        for one in reversed(page)
    ]
    return lines, earlier


def approve_task(
    *,
    caller: Actor,
    task_id: str,
    now: datetime,
    approve: bool = True,
    comment: str = "",
    expected_version: int | None = None,
) -> TaskResult:
    """Approve a task's work, or withdraw the approval (spec: tasks 44).

    Only work in progress is approved, and not by an agent that did it. The approval ends when
    anyone changes content, or anyone but a lead changes the owner. `enforcement` decides on a
    stale version as in an update (Spec: tasks 36). Raises Denied.
    """
    actor = actor_of(caller, Deed.APPROVE_TASK)
    with transaction.atomic():
        row = read_for(actor, task_id, lock=True)
        require_still(caller)
        version = can_apply_to_version(actor, row, TaskUpdate(expected_version=expected_version))
        effect = effect_of(version, actor) if isinstance(version, Deny) else Enforcement.OFF
        if effect is Enforcement.ENFORCE:
            caller.require(version)
        caller.require(can_approve(actor, row))
        row = _save_approval(caller, actor, row, approve=approve, now=now)
        warnings: list[Deny] = []
        if isinstance(version, Deny) and effect is Enforcement.WARN:
            warnings.append(version)
        for one in warnings:
            insert_event(warning_event(one, caller, subject_of(actor.policy, row.number), now))
        if comment:
            comment_task(caller=caller, task_id=task_id, body=comment, now=now)
    return task_result(row, actor.readership, warnings)


def _save_approval(
    caller: Actor, actor: TaskActor, row: TaskRow, *, approve: bool, now: datetime
) -> TaskRow:
    event = Event.by(
        caller,
        Action.TASK_APPROVED if approve else Action.TASK_DISAPPROVED,
        at=now,
        subject=subject_of(actor.policy, row.number),
        kind="task",
        for_agent_id=row.owner_id,
        details={"version": row.version + 1},
    )
    values = {
        "approved_by": caller.actor if approve else "",
        "approved_at": now if approve else None,
    }
    saved = save_change(row, TaskChange(event=event, values=values))
    if saved is None:
        raise RuntimeError(f"task {row.number} changed under its lock")
    wake(row.owner_id)
    return saved
