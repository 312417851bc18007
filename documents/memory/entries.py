"""The entries of one memory: its pages, and the text of its MEMORY.md."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import TypeVar

from django.db.models import Q, QuerySet

from core import paging
from core.blank import is_blank
from core.database import planned_for_values
from documents.memory import rules
from documents.memory.owners import MemoryOwner
from documents.models import Memory, MemoryScope

FILE_SIZE = 200_000
"""Characters of the newest entries that the file of a memory shows; the rows hold all."""

FILE_ENTRIES = 1000
"""Entries that it shows at most."""

LOOKED_BACK = 5_000_000
"""Characters of the newest entries among which a person's change is compared with agents' lines."""

MAX_ENTRY = 10_000  # characters of one entry

GLOBAL_SIZE = 4_000
"""Characters of the organisation's memory that a prompt shows."""


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One entry of a memory, with the name of the agent or person that wrote it."""

    id: int
    author: str
    person: str
    text: str
    created_at: datetime


Entry = TypeVar("Entry", Memory, MemoryEntry)


def newest_entries(
    *,
    owner: MemoryOwner,
    limit: int,
    size: int,
    before: int | None = None,
    writers: Collection[int] | None = None,
) -> tuple[list[MemoryEntry], int | None]:
    """The newest entries of a memory, newest first, of `size` characters at most.

    With them the id before which there may be more, or None. What a person corrected or withdrew is
    left out, and what agents other than `writers` wrote.
    """
    rows = _rows_of(owner).order_by("-id")
    if before is not None:
        rows = rows.filter(id__lt=before)
    floor = None
    with planned_for_values():
        if writers is not None:
            floor = paging.floor_of(rows)
            rows = rows.filter(Q(author=None) | Q(author__in=writers), id__gte=floor or 0)
        rows = rows.filter(replaced_by=None).exclude(text="")
        read = list(rows.select_related("author__group")[: limit + 1])
    found = fitting(read, limit=limit, size=size)
    more = floor if len(found) == len(read) else found[-1].id
    return [_entry_of(row) for row in found], more


def fitting(entries: Sequence[Entry], *, limit: int, size: int) -> Sequence[Entry]:
    """Those that have room in so many entries and characters; the first always has."""
    sizes = accumulate(len(entry.text) for entry in entries[:limit])
    return entries[: max(sum(so_far <= size for so_far in sizes), 1)]


def replaced_entries(*, owner: MemoryOwner) -> list[MemoryEntry]:
    """The entries of a memory that people corrected or withdrew, newest first."""
    rows = _rows_of(owner).exclude(replaced_by=None).select_related("author__group")
    with planned_for_values():
        return [_entry_of(row) for row in rows.order_by("-id")]


def lines_of_agents(*, owner: MemoryOwner, among: AbstractSet[str]) -> AbstractSet[str]:
    """Those of the lines that an agent wrote in this memory, in the newest LOOKED_BACK."""
    rows = _rows_of(owner).exclude(author=None).select_related("author__group").order_by("-id")
    found, left = set[str](), LOOKED_BACK
    for row in rows.iterator(chunk_size=100) if among else ():
        found |= lines_of(memory_text([_entry_of(row)])) & among
        left -= len(row.text)
        if left < 0:
            break
    return found


def lines_of(text: str) -> AbstractSet[str]:
    """The different lines of a text, without blanks around them."""
    return {line.strip() for line in text.splitlines()}


def _rows_of(owner: MemoryOwner) -> QuerySet[Memory]:
    rows = Memory.objects.filter(
        organisation_id=owner.organisation_id, scope=MemoryScope(owner.scope)
    )
    if owner.scope == rules.AGENT:
        return rows.filter(agent=owner.agent_id)
    return rows.filter(group__slug=owner.group) if owner.scope == rules.GROUP else rows


def _entry_of(row: Memory) -> MemoryEntry:
    return MemoryEntry(row.id, row.written_by, row.person, row.text, row.created_at)


def memory_text(entries: Sequence[MemoryEntry]) -> str:
    """The text of a MEMORY.md; `entries` are newest first."""
    return "\n".join(
        f"## {entry.created_at.astimezone(UTC):%Y-%m-%d %H:%M} {entry.author}\n\n"
        f"{without_headings(entry.text)}\n"
        for entry in reversed(entries)
    )


def without_headings(text: str) -> str:
    """The text of an entry with Markdown's escape before a line's `#`.

    A heading names the author of what follows it, and no author names another (Spec: memory 13).
    """
    return "\n".join(
        line.replace("#", "\\#", 1) if _is_like_a_heading(line) else line
        for line in text.splitlines()
    )


def _is_like_a_heading(line: str) -> bool:
    """Whether a `#` is what a reader sees first; blanks and invisible characters may precede it."""
    seen = (char for char in line if char == "#" or (char.isalnum() and not is_blank(char)))
    return next(seen, "") == "#"
