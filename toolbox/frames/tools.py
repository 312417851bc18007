"""The tools of frames: delegate, take the next frame, return a result.

Spec: frames 2, frames 4.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue, StringConstraints

from core.params import Name, Params
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller, address_of
from toolbox.frames import ending, services
from toolbox.frames.results import (
    EndedFrame,
    FrameResult,
    FrameWork,
    NextFrameResult,
    OpenedFrame,
)
from toolbox.frames.vocabulary import FrameKind, FrameState
from toolbox.models import Frame
from toolbox.registry import ANY_MODE, tool
from toolbox.rules import Holder

NO_GROUP = "delegation is for agents of a group, and you are in none"


def _cannot_delegate(holder: Holder) -> str:
    return "" if holder.agent.group else NO_GROUP


def _cannot_take(holder: Holder) -> str:
    return "" if holder.agent.group or holder.is_in_frame else NO_GROUP


def _cannot_return(holder: Holder) -> str:
    """An agent with skills may be put into a frame by a person."""
    return "" if holder.agent.skills else _cannot_take(holder)


Instruction = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
FrameId = Annotated[str, StringConstraints(min_length=1, max_length=18)]


class DelegateTo(Params):
    """Work for another agent (Spec: frames 2)."""

    to: Name = Field(description="address, handle or alias: coding.developer")
    instruction: Instruction = Field(description="all the other agent needs in order to do it")
    context: JsonValue = Field(None, description="data it may see; it sees nothing else of yours")


@tool(
    "delegate_to",
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
    unusable=_cannot_delegate,
)
def delegate_to(caller: Caller, params: DelegateTo, now: datetime) -> OpenedFrame:
    """Delegate work to a member of your group, or as a leader to another leader. Read its result
    with next_frame and the frame_id.
    """
    return services.delegate_to(
        caller=caller,
        to=params.to,
        instruction=params.instruction,
        context=params.context,
        now=now,
    )


class NextFrame(Params):
    """Work to take, or a result to read."""

    frame_id: FrameId | None = Field(
        None, description="a delegation of yours: wait for its result instead of for work"
    )
    wait: int = Field(0, ge=0, le=30, description="seconds to hold until there is something")


@tool(
    "next_frame",
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
    idempotent=True,
    waits_for="frame",
    unusable=_cannot_take,
)
def next_frame(caller: Caller, params: NextFrame, now: datetime) -> NextFrameResult:
    """Take the oldest work delegated to you and enter its frame; inside a frame, see that frame
    again. With the frame_id of your own delegation: its result, once there is one.
    """
    shown: FrameWork | FrameResult | None = None
    inside = caller.frame_id
    if params.frame_id is not None:
        ended = services.read_result(caller=caller, frame_id=params.frame_id, now=now)
        shown = None if ended is None else frame_result(caller, ended)
    elif frame := services.take_next(caller=caller, now=now):
        shown, inside = frame_work(caller, frame), frame.id
    else:
        inside = None
    return {"frame": shown, "returned": services.unread_results(caller=caller, inside=inside)}


class ReturnResult(Params):
    """The end of a frame."""

    frame_id: FrameId | None = Field(None, description="default: the frame you are in")
    result: JsonValue = Field(description="text or data for the agent that asked")
    status: Literal["ok", "failed"] = "ok"


@tool(
    "return_result",
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
    destructive=True,
    unusable=_cannot_return,
)
def return_result(caller: Caller, params: ReturnResult, now: datetime) -> EndedFrame:
    """Leave the frame you are in and give its result to the agent that opened it. Unfinished work
    that you delegated from it is cancelled.
    """
    frame = ending.return_result(
        caller=caller,
        frame_id=params.frame_id,
        result=params.result,
        failed=params.status == "failed",
        now=now,
    )
    return {"frame_id": str(frame.id), "state": FrameState(frame.state)}


def frame_work(caller: Caller, frame: Frame) -> FrameWork:
    """A frame as its assignee sees it: nothing of the frame below."""
    return {
        "frame_id": str(frame.id),
        "kind": FrameKind(frame.kind),
        "name": frame.name or None,
        "from": address_of(caller, frame.opener_id),
        "instruction": frame.instruction,
        "context": frame.context,
        "allowed_tools": frame.allowed_tools,
        "depth": frame.depth,
        "state": FrameState(frame.state),
        "due_at": frame.due_at,
    }


def frame_result(caller: Caller, frame: Frame) -> FrameResult:
    """A delegation as its opener sees it after it ended."""
    return {
        "frame_id": str(frame.id),
        "kind": FrameKind.DELEGATION,
        "to": address_of(caller, frame.assignee_id),
        "state": FrameState(frame.state),
        "result": frame.result,
        "reason": frame.reason or None,
        "ended_at": cast("datetime", frame.ended_at),
    }
