"""What is said of a task, and the approval that some types need."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Any

from django.db import transaction

from core.actions import Action
from core.actors import Actor, Person
from core.decision import Deny
from core.deeds import Deed, PeopleGroup
from core.events import Event
from ledger.services import insert_event, record
from tasks.facts import Change
from tasks.hands import enforcement_of, hand_of
from tasks.models import Comment
from tasks.ownership import can_approve, can_comment
from tasks.parties import Hand
from tasks.planning import warned
from tasks.rows import Row, read_row, subject_of
from tasks.rules import has_version
from tasks.vocabulary import Enforcement
from tasks.writing import Write, swap
from toolbox.wake import wake

NOTE = "[HUMAN_NOTE]"
SHOWN = 50
"""Comments that come with a task, the last ones."""


def comment_task(*, caller: Actor, task_id: str, body: str, now: datetime) -> dict[str, Any]:
    """Say something about a task; neither its version nor its lease changes (seed 001 §10.2).

    An observer's words are marked as a human's note. Raises Denied.
    """
    hand, body = _voice(caller, body)
    row = read_row(caller.organisation_id, task_id)
    caller.require(can_comment(hand, row.facts(hand.policy)))
    told = row.owner_id if not hand.agent or row.owner_id != hand.agent.id else row.creator_id
    with transaction.atomic():
        comment = Comment.objects.create(
            task_id=row.id, author=caller.actor, body=body, created_at=now
        )
        record(
            Action.TASK_COMMENTED,
            by=caller,
            at=now,
            subject=subject_of(hand.policy, row.number),
            kind="task",
            for_agent_id=told,
            details={"comment": comment.id},
        )
        wake(told)
    return {
        "commentId": str(comment.id),
        "taskId": str(row.number),
        "author": comment.author,
        "body": body,
        "createdAt": now,
    }


def _voice(caller: Actor, body: str) -> tuple[Hand, str]:
    hand = hand_of(caller, Deed.COMMENT_TASK)
    return hand, f"{NOTE} {body}" if isinstance(caller, Person) and is_note(caller.groups) else body


def is_note(groups: Container[str]) -> bool:
    """Whether what a person of these groups writes is marked as a note: the Board's is not."""
    return PeopleGroup.BOARD not in groups


def comments_of(row_id: int) -> list[dict[str, Any]]:
    """The last comments of a task, oldest first."""
    last = Comment.objects.filter(task_id=row_id).order_by("-id")[:SHOWN]
    return [
        {"author": one.author, "body": one.body, "createdAt": one.created_at}
        for one in reversed(last)
    ]


def approve_task(
    *,
    caller: Actor,
    task_id: str,
    now: datetime,
    approve: bool = True,
    comment: str = "",
    expected_version: int | None = None,
) -> dict[str, Any]:
    """Approve a task's work, or take the approval back (seed 001 §10.2).

    Only work that has begun is approved, and by nobody who did it. The approval stands until
    anybody changes content, or somebody else than a lead the owner. A stale version is answered
    as in an update: `enforcement` says how (seed 001 §8.2). Raises Denied.
    """
    hand = hand_of(caller, Deed.APPROVE_TASK)
    with transaction.atomic():
        row = read_row(caller.organisation_id, task_id, lock=True)
        facts = row.facts(hand.policy)
        stale = has_version(hand, facts, Change(expected_version=expected_version))
        enforcement = enforcement_of(hand.policy)
        if enforcement is Enforcement.ENFORCE:
            caller.require(stale)
        caller.require(can_approve(hand, facts))
        row = _marked(caller, hand, row, approve=approve, now=now)
        if isinstance(stale, Deny) and enforcement is Enforcement.WARN:
            insert_event(warned(stale, caller, subject_of(hand.policy, row.number), now))
        if comment:
            comment_task(caller=caller, task_id=task_id, body=comment, now=now)
    return row.shown()


def _marked(caller: Actor, hand: Hand, row: Row, *, approve: bool, now: datetime) -> Row:
    sets = {
        "approved_by": caller.actor if approve else "",
        "approved_at": now if approve else None,
    }
    event = Event.by(
        caller,
        Action.TASK_APPROVED if approve else Action.TASK_DISAPPROVED,
        at=now,
        subject=subject_of(hand.policy, row.number),
        kind="task",
        for_agent_id=row.owner_id,
        details={"version": row.version + 1},
    )
    if not swap(row, Write(sets=sets), event):
        raise RuntimeError(f"task {row.number} changed under its lock")
    wake(row.owner_id)
    return read_row(caller.organisation_id, str(row.number))
