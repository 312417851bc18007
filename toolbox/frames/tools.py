"""What agents can do with frames: delegate, take what waits, return a result (seed 003 §4)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints

from core.params import (
    Name,
    Params,
)
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.frames import services
from toolbox.models import Frame
from toolbox.registry import ANY_MODE, tool

Instruction = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
FrameId = Annotated[str, StringConstraints(min_length=1, max_length=18)]


class DelegateTo(Params):
    """Work for another agent (wire)."""

    to: Name = Field(description="address, handle or alias: coding.developer")
    instruction: Instruction = Field(description="all the other agent needs in order to do it")
    context: JsonValue = Field(None, description="data it may see; it sees nothing else of yours")


@tool(
    "delegate_to",
    params=DelegateTo,
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
)
def delegate_to(caller: Caller, params: DelegateTo, now: datetime) -> dict[str, Any]:
    """Hand work to a member of your group, or as a leader to another leader. Its result comes back
    to next_frame with the frame_id.
    """
    return services.delegate_to(
        caller=caller,
        to=params.to,
        instruction=params.instruction,
        context=params.context,
        now=now,
    )


class NextFrame(Params):
    """What waits for the caller."""

    frame_id: FrameId | None = Field(
        None, description="a delegation of yours: wait for its result instead of for work"
    )
    wait: int = Field(0, ge=0, le=30, description="seconds to hold until there is something")


@tool(
    "next_frame",
    params=NextFrame,
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
    idempotent=True,
    waits_for="frame",
)
def next_frame(caller: Caller, params: NextFrame, now: datetime) -> dict[str, Any]:
    """Take the oldest work delegated to you and enter its frame; inside a frame, see that frame
    again. With the frame_id of your own delegation: its result, once there is one.
    """
    if params.frame_id is None:
        frame = services.take_next(caller=caller, now=now)
        shown, inside = (frame and _work(caller, frame), frame.id if frame else None)
    else:
        frame = services.read_result(caller=caller, frame_id=params.frame_id, now=now)
        shown, inside = (frame and _outcome(caller, frame), caller.frame_id)
    return {"frame": shown, "returned": services.untold(caller=caller, inside=inside)}


class ReturnResult(Params):
    """The end of a frame."""

    frame_id: FrameId | None = Field(None, description="the frame you are in, which it is without")
    result: JsonValue = Field(description="text or data for whoever asked")
    status: Literal["ok", "failed"] = "ok"


@tool(
    "return_result",
    params=ReturnResult,
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
    destructive=True,
)
def return_result(caller: Caller, params: ReturnResult, now: datetime) -> dict[str, Any]:
    """Leave the frame you are in and give its result to whoever opened it. Work you delegated from
    it and that is not finished is cancelled.
    """
    frame = services.return_result(
        caller=caller,
        frame_id=params.frame_id,
        result=params.result,
        failed=params.status == "failed",
        now=now,
    )
    return {"frame_id": str(frame.id), "state": frame.state}


def _work(caller: Caller, frame: Frame) -> dict[str, Any]:
    """A frame as its assignee sees it: nothing of the frame below."""
    return {
        "frame_id": str(frame.id),
        "kind": frame.kind,
        "name": frame.name or None,
        "from": services.address_of(caller, frame.opener_id),
        "instruction": frame.instruction,
        "context": frame.context,
        "allowed_tools": frame.allowed_tools,
        "depth": frame.depth,
        "state": frame.state,
        "due_at": frame.due_at,
    }


def _outcome(caller: Caller, frame: Frame) -> dict[str, Any]:
    """A frame as its opener sees it when it has ended."""
    return {
        "frame_id": str(frame.id),
        "kind": frame.kind,
        "to": services.address_of(caller, frame.assignee_id),
        "state": frame.state,
        "result": frame.result,
        "reason": frame.reason or None,
        "ended_at": frame.ended_at,
    }
