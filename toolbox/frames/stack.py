"""The stack of frames: opening on top of it, ending a frame with all that stands on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Code, refuse
from ledger.services import record
from toolbox.caller import Caller
from toolbox.frames.rules import Stack, narrowed
from toolbox.models import Frame, FrameKind, FrameState, Session
from toolbox.wake import wake

UNENDED = (FrameState.OPEN, FrameState.TAKEN)


@dataclass(frozen=True, slots=True)
class Base:
    """What a new frame stands on: the frame the caller is in, locked, and the stack below."""

    frame: Frame | None
    stack: Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a frame ends."""

    state: FrameState
    action: Action
    reason: str = ""
    result: Any = None


def base_of(caller: Caller) -> Base:
    """Lock the frame that the caller is in, so that nothing ends it meanwhile, and read its stack.

    Needs a transaction. Raises Denied INVALID_TRANSITION when it ended since the call was proven.
    """
    if caller.frame_id is None:
        return Base(None, Stack(0, frozenset({caller.handle})))
    top = Frame.objects.select_for_update().filter(id=caller.frame_id).first()
    if top is None or top.state != FrameState.TAKEN:
        raise refuse(
            Code.INVALID_TRANSITION,
            "the frame you are in has ended",
            "call next_frame to see where you are",
            rule="a frame is worked in while it is taken",
        )
    openers, skills = {caller.handle}, set[str]()
    frame: Frame | None = top
    while frame is not None:
        opener = caller.policy.by_id.get(frame.opener_id)
        if opener is not None:
            openers.add(opener.handle)
        if frame.kind == FrameKind.SKILL:
            skills.add(frame.name)
        frame = frame.parent
    return Base(top, Stack(top.depth, frozenset(openers), frozenset(skills)))


def push(
    *,
    caller: Caller,
    base: Base,
    fields: Mapping[str, Any],
    tools: Iterable[str] | None,
    now: datetime,
) -> Frame:
    """Write a frame on top of a base: one deeper, not later due, with no more tools."""
    below = base.frame
    due_at = now + timedelta(seconds=caller.policy.settings["frame_timeout"])
    return Frame.objects.create(
        organisation_id=caller.organisation_id,
        opener_id=caller.agent.id,
        parent=below,
        depth=base.stack.depth + 1,
        allowed_tools=narrowed(
            None if tools is None else set(tools), None if below is None else below.allowed_tools
        ),
        opened_at=now,
        due_at=due_at if below is None else min(due_at, below.due_at),
        **fields,
    )


def end(*, frame: Frame, ending: Ending, actor: Actor, now: datetime) -> None:
    """End a frame that the caller has locked, cancel what stands on it, and pop its sessions.

    In the transaction of its cause. Its opener is told of a result, its assignee of a cancellation.
    """
    with transaction.atomic():
        above = _lock_above(frame)
        frame.state, frame.reason, frame.ended_at = ending.state, ending.reason, now
        frame.result = ending.result
        frame.save(update_fields=["state", "reason", "ended_at", "result"])
        for child in above:
            child.state, child.ended_at = FrameState.CANCELLED, now
            child.reason = "the frame that asked for it has ended"
            child.save(update_fields=["state", "ended_at", "reason"])
        _pop([frame, *above])
        _tell(frame, ending.action, actor, now)
        for child in above:
            _tell(child, Action.FRAME_CANCELLED, actor, now)


def _lock_above(frame: Frame) -> list[Frame]:
    """Every unended frame above this one, locked from the bottom up."""
    found: list[Frame] = []
    level = [frame.id]
    while level:
        rows = list(
            Frame.objects.select_for_update()
            .filter(parent_id__in=level, state__in=UNENDED)
            .order_by("id")
        )
        found += rows
        level = [row.id for row in rows]
    return found


def _pop(ended: list[Frame]) -> None:
    """Put every session that was in one of these frames where it came from."""
    by_id = {frame.id: frame for frame in ended}
    for frame in ended:
        Session.objects.filter(frame_id=frame.id).update(frame_id=_below(frame, by_id))


def _below(frame: Frame, ended: Mapping[int, Frame]) -> int | None:
    """Where a session goes on: a skill was entered from its parent, a delegation from nowhere."""
    at: Frame | None = frame
    while at is not None and at.kind == FrameKind.SKILL:
        if at.parent_id is None or at.parent_id not in ended:
            return at.parent_id
        at = ended[at.parent_id]
    return None


def _tell(frame: Frame, action: Action, actor: Actor, now: datetime) -> None:
    cancelled = frame.state == FrameState.CANCELLED
    told = frame.assignee_id if cancelled else frame.opener_id
    stranger = frame.kind == FrameKind.DELEGATION or actor.actor.startswith(("human:", "system:"))
    record(
        action,
        by=actor,
        at=now,
        subject=f"frame:{frame.id}",
        reason=frame.reason,
        kind="frame" if stranger else "",
        for_agent_id=told if stranger else None,
        details={"frame_id": str(frame.id), "state": frame.state},
    )
    wake(frame.opener_id, frame.assignee_id)
