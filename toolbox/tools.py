"""The toolbox's own tools."""

from __future__ import annotations

from datetime import UTC, datetime

from core.params import Params
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.frames import tools as frame_tools  # noqa: F401  declares them
from toolbox.registry import ANY_MODE, tool
from toolbox.results import CurrentTimeResult


class CurrentTime(Params):
    """No parameters."""


@tool(
    "current_time",
    source=Source.BUILTIN,
    group=ToolGroup.WORLD,
    modes=ANY_MODE,
    read_only=True,
    idempotent=True,
)
def current_time(caller: Caller, params: CurrentTime, now: datetime) -> CurrentTimeResult:
    """The time now, in UTC."""
    return {"now": now.astimezone(UTC), "timezone": "UTC"}
