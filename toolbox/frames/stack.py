"""The stack of frames: the caller's place in it, pushing a frame, saving a transition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from core.database import needs_transaction, planned_for_values
from core.decision import Code, Denied, refuse, stale
from core.events import Event
from core.machines import Swap, swap
from ledger.sql import event_cte
from orgchart.models import Agent
from toolbox.caller import Caller
from toolbox.frames.rules import Stack, narrowed
from toolbox.frames.vocabulary import FrameKind, FrameState
from toolbox.models import Frame


@dataclass(frozen=True, slots=True)
class StackTop:
    """The frame the caller is in, locked, and what the rules ask of the stack up to it."""

    frame: Frame | None
    stack: Stack


def frame_taken_by(agent_id: int, rows: QuerySet[Frame] | None = None) -> Frame | None:
    """The newest frame that an agent has taken and not ended, the one it works in (Spec: frames 8).

    `rows` are the frames that it is looked for among, with a lock for one.
    """
    found = Frame.objects.all() if rows is None else rows
    with planned_for_values():
        return found.filter(assignee_id=agent_id, state=FrameState.TAKEN).order_by("-id").first()


def present_frame(agent_id: int) -> tuple[int | None, frozenset[str] | None]:
    """The id of the frame that an agent works in, and the tools that it restricts the agent to."""
    frame = frame_taken_by(agent_id)
    if frame is None:
        return None, None
    return frame.id, None if frame.allowed_tools is None else frozenset(frame.allowed_tools)


@needs_transaction
def lock_agent(caller: Caller) -> None:
    """Lock the caller's agent: of its sessions one at a time enters a frame.

    Raises Denied AGENT_INACTIVE where it was deactivated while its call runs.
    """
    row = Agent.objects.select_for_update(no_key=True).only("active").get(id=caller.agent.id)
    if not row.active:
        raise refuse(
            Code.AGENT_INACTIVE,
            f"{caller.handle} was deactivated",
            "nothing is left to do",
            rule="a call of a deactivated agent happens before or after (spec: organisation 38)",
        )


@needs_transaction
def lock_top(caller: Caller) -> StackTop:
    """Lock the frame that the agent works in, so that nothing ends it meanwhile; read its stack.

    Raises Denied INVALID_TRANSITION if that is another one than when the caller was authenticated.
    """
    lock_agent(caller)
    top = frame_taken_by(caller.agent.id, Frame.objects.select_for_update())
    if (None if top is None else top.id) != caller.frame_id:
        raise refuse(
            Code.INVALID_TRANSITION,
            "the frame you were in has ended, or you entered another one in another session",
            "call next_frame to see where you are",
            rule="all sessions of an agent work in one frame",
        )
    if top is None:
        return StackTop(None, Stack(0, frozenset({caller.handle})))
    openers, skills = {caller.handle}, set[str]()
    frame: Frame | None = top
    while frame is not None:
        opener = caller.policy.by_id.get(frame.opener_id)
        if opener is not None:
            openers.add(opener.handle)
        if frame.kind == FrameKind.SKILL:
            skills.add(frame.name)
        frame = frame.parent
    return StackTop(top, Stack(top.depth, frozenset(openers), frozenset(skills)))


@needs_transaction
def push_frame(
    *, caller: Caller, top: StackTop, tools: Iterable[str] | None, now: datetime, **fields: Any
) -> Frame:
    """Insert a frame on top of a stack: one deeper, not later due, with no more tools."""
    below = top.frame
    due_at = now + timedelta(seconds=caller.policy.settings["frame_timeout"])
    return Frame.objects.create(
        organisation_id=caller.organisation_id,
        opener_id=caller.agent.id,
        parent=below,
        depth=top.stack.depth + 1,
        allowed_tools=narrowed(
            None if tools is None else set(tools), None if below is None else below.allowed_tools
        ),
        opened_at=now,
        due_at=due_at if below is None else min(due_at, below.due_at),
        **fields,
    )


@needs_transaction
def save_frame(
    frame: Frame,
    *,
    before: FrameState,
    event: Event,
    columns: Sequence[str],
) -> None:
    """Save a transition of a locked frame, with its event, as one statement.

    `before` is the state before the transition, `columns` are what the transition set. Raises
    Denied VERSION_MISMATCH if the frame changed after it was read.
    """
    change = Swap(
        model=Frame,
        key=frame.id,
        version=frame.version,
        state=("state", before, frame.state),
        values={column: getattr(frame, column) for column in columns},
    )
    if not swap(change, [event_cte(event)]):
        raise Denied(stale(f"frame {frame.id}", "call next_frame to see where you are"))
