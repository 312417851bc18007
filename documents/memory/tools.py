"""What agents can do with memory: read, append, search, save (seed 003 §5.1: built in)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from core.paging import DEFAULT_LIMIT
from core.params import (
    Cursor,
    Limit,
    Params,
)
from documents.memory import reading, services
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

ScopeName = Literal["agent", "group", "organisation"]


class ReadMemory(Params):
    """A memory, or one artifact."""

    scope: ScopeName = "agent"
    artifact_id: Annotated[str, StringConstraints(min_length=1, max_length=18)] | None = Field(
        None, description="to read one saved artifact instead; of your own or your group"
    )
    cursor: Cursor | None = None
    limit: Limit = DEFAULT_LIMIT


@tool(
    "read_memory",
    params=ReadMemory,
    source=Source.BUILTIN,
    group=ToolGroup.MEMORY,
    modes=ANY_MODE,
    read_only=True,
)
def read_memory(caller: Caller, params: ReadMemory, now: datetime) -> dict[str, Any]:
    """Read your own memory, your group's or the organisation's; or an artifact by its id."""
    if params.artifact_id is not None:
        return reading.read_artifact(caller=caller, artifact_id=params.artifact_id)
    return reading.read_memory(
        caller=caller, scope=params.scope, cursor=params.cursor, limit=params.limit
    )


class MemoryAppend(Params):
    """One entry."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
    scope: ScopeName = "agent"


@tool(
    "memory_append",
    params=MemoryAppend,
    source=Source.BUILTIN,
    group=ToolGroup.MEMORY,
    modes=ANY_MODE,
)
def memory_append(caller: Caller, params: MemoryAppend, now: datetime) -> dict[str, Any]:
    """Remember something: for yourself, for your group, or, as a leader, for the organisation."""
    return services.append(caller=caller, scope=params.scope, text=params.text, now=now)


class MemorySearch(Params):
    """What to look for."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(
        description='words, in English or Chinese; all must be found; "…", or, - as on the web'
    )
    limit: Limit = 10
    cursor: Cursor | None = None


@tool(
    "memory_search",
    params=MemorySearch,
    source=Source.BUILTIN,
    group=ToolGroup.MEMORY,
    modes=ANY_MODE,
    read_only=True,
)
def memory_search(caller: Caller, params: MemorySearch, now: datetime) -> dict[str, Any]:
    """Search your memory, your group's and the organisation's, best match first."""
    return reading.memory_search(
        caller=caller, query=params.query, cursor=params.cursor, limit=params.limit
    )


class SaveArtifact(Params):
    """Something made."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=120)] = Field(
        description="a file name such as report.md; used again it makes another version"
    )
    content: Annotated[str, StringConstraints(max_length=500_000)]
    description: Annotated[str, StringConstraints(max_length=500)] = ""


@tool(
    "save_artifact",
    params=SaveArtifact,
    source=Source.BUILTIN,
    group=ToolGroup.MEMORY,
    modes=ANY_MODE,
)
def save_artifact(caller: Caller, params: SaveArtifact, now: datetime) -> dict[str, Any]:
    """Keep something you made under a name; later you and your group read it by its id."""
    return services.save_artifact(
        caller=caller,
        name=params.name,
        content=params.content,
        description=params.description,
        now=now,
    )
