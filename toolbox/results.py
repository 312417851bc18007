"""What the toolbox's own tool and its addresses for sessions return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from core.decision import Code
from core.params import wire_result
from orgchart.policy.vocabulary import ToolMode


@wire_result
class CurrentTimeResult(TypedDict):
    """The time now."""

    now: datetime
    timezone: Literal["UTC"]


@wire_result
class SessionSummary(TypedDict):
    """A session with its effective mode."""

    id: str
    mode: ToolMode
    contract: Annotated[str | None, Field(description="the contract that opened its mode, if any")]


@wire_result
class SessionDetails(SessionSummary):
    """A session with its effective mode and when it was opened."""

    opened_at: datetime


@wire_result
class Explanation(TypedDict):
    """What a call would be answered, and by which rule."""

    allowed: bool
    error_code: Code | None
    rule: str
    message: str
