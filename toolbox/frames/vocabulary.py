"""Kinds and states of frames, and the one table of their transitions."""

from enum import StrEnum

from core.machines import Machine, Step


class FrameKind(StrEnum):
    """How a frame is opened (Spec: frames 1)."""

    DELEGATION = "delegation"
    SKILL = "skill"


class FrameState(StrEnum):
    """The state of a frame. The last three are final."""

    OPEN = "open"
    TAKEN = "taken"
    RETURNED = "returned"
    FAILED = "failed"
    CANCELLED = "cancelled"


UNENDED = (FrameState.OPEN, FrameState.TAKEN)

FRAME = Machine(
    "frame",
    FrameState,
    FrameState.OPEN,
    {
        "take": Step((FrameState.OPEN,), FrameState.TAKEN, "assignee"),
        "return_result": Step((FrameState.TAKEN,), FrameState.RETURNED, "assignee"),
        "fail": Step(UNENDED, FrameState.FAILED, "assignee, Board or timeout"),
        "cancel": Step(UNENDED, FrameState.CANCELLED, "the frame below ends, or its opener leaves"),
    },
)
