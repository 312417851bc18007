"""Verbs on frames: delegate, take, return, cancel, and fail what is due (seed 003 §4, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from django.db import transaction
from pydantic_core import to_json

from core.actions import Action
from core.actors import Actor, System
from core.decision import Allow, Code, Denied, Deny, refuse, require
from ledger.services import record
from orgchart.models import Agent
from orgchart.policy import compiled as policy
from toolbox.caller import Caller
from toolbox.frames import rules
from toolbox.frames.stack import UNENDED, Ending, base_of, end, push
from toolbox.models import Frame, FrameKind, FrameState, Session
from toolbox.scheduler import sweep
from toolbox.wake import wake

MAX_CONTEXT = 200_000
"""Bytes of JSON that a context or a result may have."""
UNTOLD = 50


def delegate_to(
    *, caller: Caller, to: str, instruction: str, context: Any, now: datetime
) -> dict[str, Any]:
    """Open a frame for another agent, on top of the one the caller is in.

    Raises Denied: RECIPIENT_UNKNOWN, RECIPIENT_INACTIVE, CONTACT_DENIED (also for a circle),
    INVALID_TRANSITION past eight frames, TOO_LARGE.
    """
    target = caller.policy.resolve(to)
    allowed = require(rules.can_delegate(caller.agent, target, to, caller.policy))
    target = cast("policy.Agent", target)
    _require_small("context", context)
    with transaction.atomic():
        base = base_of(caller)
        require(rules.can_open(target, base.stack))
        require(allowed)
        frame = push(
            caller=caller,
            base=base,
            tools=None,
            now=now,
            fields={
                "kind": FrameKind.DELEGATION,
                "assignee_id": target.id,
                "instruction": instruction,
                "context": context,
            },
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


def enter_skill(
    *, caller: Caller, name: str, prompt: str, tools: Sequence[str], now: datetime
) -> Frame:
    """Open `skill__<name>` for the caller itself and enter it on the caller's session.

    `tools` are what the skill may use at most; the caller's own gates stay in force. Raises Denied
    INVALID_TRANSITION for a skill inside itself or past eight frames.
    """
    with transaction.atomic():
        base = base_of(caller)
        require(rules.can_enter_skill(name, base.stack))
        _require_unmoved(caller)
        frame = push(
            caller=caller,
            base=base,
            tools=tools,
            now=now,
            fields={
                "kind": FrameKind.SKILL,
                "name": name,
                "assignee_id": caller.agent.id,
                "instruction": prompt,
                "state": FrameState.TAKEN,
                "taken_at": now,
            },
        )
        Session.objects.filter(id=caller.session.id).update(frame=frame)
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
    """The frame the session is in; else the oldest one waiting for the caller, entered now.

    Of several takers each gets another frame. None where nothing waits.
    """
    with transaction.atomic():
        session = Session.objects.select_for_update().get(id=caller.session.id)
        if session.frame_id is not None:
            return session.frame
        frame = (
            Frame.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(assignee_id=caller.agent.id, state=FrameState.OPEN, due_at__gt=now)
            .order_by("id")
            .first()
        )
        if frame is None:
            return None
        frame.state, frame.taken_at = FrameState.TAKEN, now
        frame.save(update_fields=["state", "taken_at"])
        Session.objects.filter(id=session.id).update(frame=frame)
        record(
            Action.FRAME_TAKEN,
            by=caller,
            at=now,
            subject=f"frame:{frame.id}",
            kind="frame",
            for_agent_id=frame.opener_id,
            details={"frame_id": str(frame.id), "by": caller.agent.address},
        )
        wake(frame.opener_id, frame.assignee_id)
        return frame


def read_result(*, caller: Caller, frame_id: str, now: datetime) -> Frame | None:
    """A delegation of the caller, once it has ended; None while it has not.

    Results belong to the frame that asked for them: from any other, and for anybody else's, Denied
    NOT_FOUND.
    """
    with transaction.atomic():
        frame = (
            Frame.objects.filter(
                id=_number(frame_id),
                organisation_id=caller.organisation_id,
                opener_id=caller.agent.id,
                parent_id=caller.frame_id,
                kind=FrameKind.DELEGATION,
            ).first()
            or _not_found()
        )
        if frame.state in UNENDED:
            return None
        if Frame.objects.filter(id=frame.id, told_at=None).update(told_at=now):
            record(Action.FRAME_READ, by=caller, at=now, subject=f"frame:{frame.id}")
    return frame


def untold(*, caller: Caller, inside: int | None) -> list[str]:
    """Ids of the delegations that the caller made inside a frame (None: outside of any), that have
    ended and whose results it has not read.
    """
    rows = Frame.objects.filter(
        opener_id=caller.agent.id,
        parent_id=inside,
        kind=FrameKind.DELEGATION,
        told_at=None,
        state__in=[FrameState.RETURNED, FrameState.FAILED],
    ).order_by("id")
    return [str(number) for number in rows.values_list("id", flat=True)[:UNTOLD]]


def return_result(
    *, caller: Caller, frame_id: str | None, result: Any, failed: bool, now: datetime
) -> Frame:
    """End the frame that the session is in and hand its result to whoever opened it.

    It need not be named: whom a person put into a frame was never told its id. What it delegated
    and nobody has finished is cancelled. Raises Denied: NOT_FOUND for a frame of somebody else,
    INVALID_TRANSITION for one that ended or that this session is not in, TOO_LARGE.
    """
    _require_small("result", result)
    number = caller.frame_id if frame_id is None else _number(frame_id)
    if number is None:
        raise refuse(
            Code.INVALID_TRANSITION,
            "this session is in no frame",
            "call next_frame for what waits for you",
            rule="a frame is returned from inside, the last one first",
        )
    with transaction.atomic():
        frame = (
            Frame.objects.select_for_update().filter(id=number, assignee_id=caller.agent.id).first()
            or _not_found()
        )
        require(_can_return(frame, caller))
        state = FrameState.FAILED if failed else FrameState.RETURNED
        ending = Ending(state=state, action=Action(f"frame.{state}"), result=result)
        end(frame=frame, ending=ending, actor=caller, now=now)
    return frame


def cancel_frame(*, frame_id: int, caller: Actor, reason: str, now: datetime) -> Frame:
    """Cancel a frame, and with it everything that stands on it.

    Its opener waits for a result, and gets a failure; who works on it is told that it need not go
    on. Raises Denied: NOT_FOUND for another organisation's, INVALID_TRANSITION for an ended one,
    INVALID_PARAMS for an empty reason.
    """
    if not reason.strip():
        raise refuse(Code.INVALID_PARAMS, "a frame is cancelled with a reason", "say why")
    with transaction.atomic():
        frame = (
            Frame.objects.select_for_update()
            .filter(id=frame_id, organisation_id=caller.organisation_id)
            .first()
            or _not_found()
        )
        if frame.state not in UNENDED:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"frame {frame.id} has ended, it is {frame.state}",
                "there is nothing left to cancel",
                rule="a frame ends once",
            )
        ending = Ending(
            state=FrameState.FAILED,
            action=Action.FRAME_FAILED,
            reason=reason,
            result={"error": "cancelled", "message": reason},
        )
        end(frame=frame, ending=ending, actor=caller, now=now)
        if frame.assignee_id != frame.opener_id:
            record(
                Action.FRAME_CANCELLED,
                by=caller,
                at=now,
                subject=f"frame:{frame.id}",
                reason=reason,
                kind="frame",
                for_agent_id=frame.assignee_id,
                details={"frame_id": str(frame.id), "state": frame.state},
            )
    return frame


def fail_due(now: datetime) -> int:
    """End every frame whose time is over: its opener gets a failure (seed 003 §4). How many."""
    return sweep(
        Frame.objects.filter(state__in=UNENDED, due_at__lte=now).order_by("id"),
        lambda frame: _fail(frame, now),
    )


def _fail(frame: Frame, now: datetime) -> None:
    frame.refresh_from_db()  # a frame below it may have ended it in this very sweep
    if frame.state in UNENDED:
        ending = Ending(
            state=FrameState.FAILED,
            action=Action.FRAME_FAILED,
            reason="its time was over",
            result={"error": "timeout", "message": "no result came in time"},
        )
        system = System(name="frames", organisation_id=frame.organisation_id)
        end(frame=frame, ending=ending, actor=system, now=now)


def address_of(caller: Caller, agent_id: int) -> str:
    """An agent's address; deactivated ones are still in the policy."""
    agent = caller.policy.by_id.get(agent_id)
    return agent.address if agent else Agent.objects.get(id=agent_id).handle


def _can_return(frame: Frame, caller: Caller) -> Allow | Deny:
    if frame.state not in UNENDED:
        return _ended(frame).deny
    if not Session.objects.filter(id=caller.session.id, frame_id=frame.id).exists():
        return Deny(
            Code.INVALID_TRANSITION,
            f"this session is not in frame {frame.id}",
            "enter it with next_frame, or return it in the session that took it",
            "a frame is returned from inside, the last one first",
        )
    return Allow("a frame is returned from inside, the last one first")


def _ended(frame: Frame) -> Denied:
    why = f": {frame.reason}" if frame.reason else ""
    return refuse(
        Code.INVALID_TRANSITION,
        f"frame {frame.id} has ended, it is {frame.state}{why}",
        "call next_frame for what waits for you now",
        rule="a frame ends once",
    )


def _require_unmoved(caller: Caller) -> None:
    """Two calls at once on one session: the second finds the session in another frame."""
    session = Session.objects.select_for_update().get(id=caller.session.id)
    if session.frame_id != caller.frame_id:
        raise refuse(
            Code.INVALID_TRANSITION,
            "this session entered or left a frame meanwhile",
            "call next_frame to see where you are, then decide again",
            rule="one frame at a time on a session",
        )


def _require_small(field: str, value: Any) -> None:
    if len(to_json(value)) > MAX_CONTEXT:
        raise refuse(
            Code.TOO_LARGE,
            f"{field} may have {MAX_CONTEXT} bytes of JSON",
            "save_artifact it and name the artifact instead",
            rule="size of a frame",
        )


def _number(frame_id: str) -> int:
    return int(frame_id) if frame_id.isascii() and frame_id.isdigit() else -1


def _not_found() -> Frame:
    raise refuse(
        Code.NOT_FOUND,
        "you have no such frame",
        "call next_frame for what waits for you",
        rule="a frame is seen by its opener and its assignee",
    )
