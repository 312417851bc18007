"""What the tools of memory return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from documents.models import MemoryScope
from documents.results import NextCursor


@wire_result
class AppendedMemory(TypedDict):
    """An entry that was added to a memory."""

    memory_id: str
    scope: MemoryScope
    created_at: datetime


@wire_result
class MemoryPage(TypedDict):
    """The newest part of a memory, oldest entry first; the next page is older."""

    scope: MemoryScope
    path: Annotated[str, Field(description="its MEMORY.md in the company tree")]
    text: str
    entries: Annotated[int, Field(description="how many entries the text holds")]
    next_cursor: NextCursor


@wire_result
class FoundMemory(TypedDict):
    """An entry that a search found."""

    memory_id: str
    scope: MemoryScope
    author: str
    text: str
    created_at: datetime
    rank: float


@wire_result
class FoundMemories(TypedDict):
    """What a search found, best match first."""

    memories: list[FoundMemory]
    next_cursor: NextCursor


@wire_result
class SavedArtifact(TypedDict):
    """A version of an artifact that was saved."""

    artifact_id: str
    path: str
    sha256: str
    version: int


@wire_result
class WholeArtifact(TypedDict):
    """An artifact with its content."""

    artifact_id: str
    name: str
    version: int
    author: str
    path: str
    description: str
    sha256: str
    created_at: datetime
    text: str
