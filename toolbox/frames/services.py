"""Opening frames and working in them: delegate, enter a skill, take work, read results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from django.db import transaction
from pydantic_core import to_json

from core.actions import Action
from core.database import planned_for_values
from core.decision import Code, Denied, refuse
from core.events import Event
from core.ids import row_id
from core.machines import Swap, swap
from ledger.services import record
from ledger.sql import event_cte
from orgchart.policy import compiled as policy
from toolbox.caller import Caller
from toolbox.frames import rules
from toolbox.frames.results import OpenedFrame
from toolbox.frames.stack import (
    frame_taken_by,
    lock_agent,
    lock_top,
    push_frame,
    save_frame,
)
from toolbox.frames.vocabulary import UNENDED, FrameKind, FrameState
from toolbox.models import Frame
from toolbox.wake import wake

MAX_CONTEXT = 200_000
"""Bytes of JSON that a context or a result may have."""
MAX_UNREAD = 50
"""Unread results that are listed at once."""


def delegate_to(
    *, caller: Caller, to: str, instruction: str, context: Any, now: datetime
) -> OpenedFrame:
    """Open a frame for another agent, on top of the one the caller is in.

    Raises Denied: RECIPIENT_UNKNOWN, RECIPIENT_INACTIVE, CONTACT_DENIED, DELEGATION_CIRCLE,
    INVALID_TRANSITION past eight frames, QUOTA_EXCEEDED where too many wait, TOO_LARGE.
    """
    target = caller.policy.resolve(to)
    allowed = caller.require(rules.can_delegate(caller.agent, target, to, caller.policy))
    target = cast("policy.Agent", target)
    require_small("context", context)
    with transaction.atomic():
        top = lock_top(caller)
        caller.require(rules.can_open(target, top.stack))
        caller.require(rules.can_wait_for(_waiting(caller, target), target))
        caller.require(allowed)
        frame = push_frame(
            caller=caller,
            top=top,
            tools=None,
            now=now,
            kind=FrameKind.DELEGATION,
            assignee_id=target.id,
            instruction=instruction,
            context=context,
        )
        record(
            Action.FRAME_OPENED,
            by=caller,
            at=now,
            subject=f"frame:{frame.id}",
            kind="frame",
            for_agent_id=target.id,
            details={
                "frame_id": str(frame.id),
                "from": caller.agent.address,
                "to": target.address,
                "depth": frame.depth,
            },
        )
        wake(target.id)
    return {"frame_id": str(frame.id)}


def _waiting(caller: Caller, target: policy.Agent) -> int:
    waiting = Frame.objects.filter(
        assignee_id=target.id, state=FrameState.OPEN, opener_id=caller.agent.id
    )
    return waiting[: rules.MOST_WAITING].count()


def enter_skill(
    *, caller: Caller, name: str, prompt: str, tools: Sequence[str], now: datetime
) -> Frame:
    """Open `skill__<name>` for the caller itself and enter it, with all its sessions.

    `tools` are what the skill may use at most; the caller's own gates stay in force. Raises Denied
    INVALID_TRANSITION for a skill inside itself or past eight frames.
    """
    with transaction.atomic():
        top = lock_top(caller)
        caller.require(rules.can_enter_skill(name, top.stack))
        frame = push_frame(
            caller=caller,
            top=top,
            tools=tools,
            now=now,
            kind=FrameKind.SKILL,
            name=name,
            assignee_id=caller.agent.id,
            instruction=prompt,
            state=FrameState.TAKEN,
            taken_at=now,
        )
        record(
            Action.FRAME_OPENED,
            by=caller,
            at=now,
            subject=f"frame:{frame.id}",
            details={"frame_id": str(frame.id), "skill": name, "tools": frame.allowed_tools},
        )
        wake(caller.agent.id)
    return frame


def take_next(*, caller: Caller, now: datetime) -> Frame | None:
    """The frame the agent is in; else the oldest one that waits for it, entered now.

    Concurrent sessions of one agent get the same frame. None if no frame waits. A frame of an
    agent that may no longer delegate to the caller waits until its time is over.
    """
    with transaction.atomic():
        lock_agent(caller)
        if top := frame_taken_by(caller.agent.id):
            return top
        waiting = (
            Frame.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(assignee_id=caller.agent.id, state=FrameState.OPEN, due_at__gt=now)
            .filter(opener_id__in=rules.delegators_of(caller.agent, caller.policy))
            .order_by("id")
        )
        with planned_for_values():
            frame = waiting.first()
        if frame is None:
            return None
        frame.take(at=now)
        event = Event.by(
            caller,
            Action.FRAME_TAKEN,
            at=now,
            subject=f"frame:{frame.id}",
            kind="frame",
            for_agent_id=frame.opener_id,
            details={"frame_id": str(frame.id), "by": caller.agent.address},
        )
        save_frame(frame, before=FrameState.OPEN, event=event, columns=["taken_at"])
        wake(frame.opener_id, frame.assignee_id)
        return frame


def read_result(*, caller: Caller, frame_id: str, now: datetime) -> Frame | None:
    """A delegation of the caller, after it ended; None before.

    A result can be read only inside the frame that asked for it. Raises Denied NOT_FOUND for any
    other frame, and for other agents' frames.
    """
    with transaction.atomic():
        frame = Frame.objects.filter(
            id=frame_number(frame_id),
            organisation_id=caller.organisation_id,
            opener_id=caller.agent.id,
            parent_id=caller.frame_id,
            kind=FrameKind.DELEGATION,
        ).first()
        if frame is None:
            raise no_such_frame()
        if frame.state in UNENDED:
            return None
        if frame.result_read_at is None:
            event = Event.by(caller, Action.FRAME_READ, at=now, subject=f"frame:{frame.id}")
            change = Swap(
                model=Frame, key=frame.id, version=frame.version, values={"result_read_at": now}
            )
            swap(change, [event_cte(event)])
    return frame


def unread_results(*, caller: Caller, inside: int | None) -> list[str]:
    """Ids of ended delegations whose result the caller has not read, in the order opened.

    `inside` is the frame that they were opened in, None for outside of any.
    """
    rows = Frame.objects.filter(
        opener_id=caller.agent.id,
        parent_id=inside,
        kind=FrameKind.DELEGATION,
        result_read_at=None,
        state__in=[FrameState.RETURNED, FrameState.FAILED],
    ).order_by("id")
    with planned_for_values():
        return [str(number) for number in rows.values_list("id", flat=True)[:MAX_UNREAD]]


def require_small(field: str, value: Any) -> None:
    """Raise Denied TOO_LARGE for a context or result that is too large to keep."""
    if len(to_json(value)) > MAX_CONTEXT:
        raise refuse(
            Code.TOO_LARGE,
            f"{field} may have {MAX_CONTEXT} bytes of JSON",
            "store it with save_artifact and name the artifact instead",
            rule="size of a frame",
        )


def frame_number(frame_id: str) -> int:
    """The number of a frame's id; -1, which no frame has, if it is none."""
    number = row_id(frame_id)
    return -1 if number is None else number


def no_such_frame() -> Denied:
    """The refusal for a frame that does not exist or belongs to others."""
    return refuse(
        Code.NOT_FOUND,
        "you have no such frame",
        "call next_frame for what waits for you",
        rule="a frame is seen by its opener and its assignee",
    )
