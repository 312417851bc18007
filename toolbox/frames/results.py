"""What the tools of frames return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from toolbox.frames.vocabulary import FrameKind, FrameState


@wire_result
class OpenedFrame(TypedDict):
    """The frame of a delegation, to ask next_frame for its result."""

    frame_id: str


_From = TypedDict(
    "_From", {"from": Annotated[str, Field(description="address of the agent that waits")]}
)


@wire_result
class FrameWork(_From):
    """A frame as its assignee sees it: nothing of the frame below."""

    frame_id: str
    kind: FrameKind
    name: Annotated[str | None, Field(description="the skill's name; null for a delegation")]
    instruction: str
    context: Any
    allowed_tools: Annotated[list[str] | None, Field(description="null: not restricted")]
    depth: int
    state: FrameState
    due_at: datetime


@wire_result
class FrameResult(TypedDict):
    """A delegation as its opener sees it after it ended."""

    frame_id: str
    kind: Literal[FrameKind.DELEGATION]
    to: Annotated[str, Field(description="address of the agent that did the work")]
    state: FrameState
    result: Any
    reason: str | None
    ended_at: datetime


@wire_result
class NextFrameResult(TypedDict):
    """What waits for the caller."""

    frame: Annotated[
        FrameWork | FrameResult | None,
        Field(description="work to do, or the result that was asked for; null: nothing yet"),
    ]
    returned: Annotated[
        list[str],
        Field(description="your ended delegations with unread results"),
    ]


@wire_result
class EndedFrame(TypedDict):
    """The frame that was left."""

    frame_id: str
    state: FrameState
