"""The tools of memory: read, append, search, save (Spec: tools 5)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from core.params import Description, Limit, Page, Params
from documents.memory import artifacts, listing, search, services
from documents.memory.entries import MAX_ENTRY
from documents.memory.results import (
    AppendedMemory,
    FoundMemories,
    MemoryPage,
    SavedArtifact,
    WholeArtifact,
)
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

ScopeName = Literal["agent", "group", "organisation"]


class ReadMemory(Page):
    """A memory, or one artifact."""

    scope: ScopeName = "agent"
    artifact_id: Annotated[str, StringConstraints(min_length=1, max_length=18)] | None = Field(
        None, description="to read an artifact instead"
    )


@tool("read_memory", source=Source.BUILTIN, group=ToolGroup.MEMORY, modes=ANY_MODE, read_only=True)
def read_memory(caller: Caller, params: ReadMemory, now: datetime) -> MemoryPage | WholeArtifact:
    """Read your own memory, your group's or the organisation's; or an artifact by its id."""
    if params.artifact_id is not None:
        return artifacts.read_artifact(caller=caller, artifact_id=params.artifact_id)
    return listing.read_memory(
        caller=caller, scope=params.scope, cursor=params.cursor, limit=params.limit
    )


class MemoryAppend(Params):
    """One entry."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_ENTRY, pattern=r"\S")]
    scope: ScopeName = "agent"


@tool("memory_append", source=Source.BUILTIN, group=ToolGroup.MEMORY, modes=ANY_MODE)
def memory_append(caller: Caller, params: MemoryAppend, now: datetime) -> AppendedMemory:
    """Remember something: for yourself, for your group, or, as a leader, for the organisation."""
    return services.append_memory(caller=caller, scope=params.scope, text=params.text, now=now)


class MemorySearch(Page):
    """A search."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(
        description='words, all must be found; "…", or, - as on the web'
    )
    limit: Limit = 10


@tool(
    "memory_search", source=Source.BUILTIN, group=ToolGroup.MEMORY, modes=ANY_MODE, read_only=True
)
def memory_search(caller: Caller, params: MemorySearch, now: datetime) -> FoundMemories:
    """Search your memory, your group's and the organisation's, best match first."""
    return search.search_memory(
        caller=caller, query=params.query, cursor=params.cursor, limit=params.limit
    )


class SaveArtifact(Params):
    """A file to save."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=120)] = Field(
        description="report.md; used again: another version"
    )
    content: Annotated[str, StringConstraints(max_length=500_000)]
    description: Description = ""


@tool("save_artifact", source=Source.BUILTIN, group=ToolGroup.MEMORY, modes=ANY_MODE)
def save_artifact(caller: Caller, params: SaveArtifact, now: datetime) -> SavedArtifact:
    """Save something you made under a name; later you and your group read it by its id."""
    return artifacts.save_artifact(
        caller=caller,
        name=params.name,
        content=params.content,
        description=params.description,
        now=now,
    )
