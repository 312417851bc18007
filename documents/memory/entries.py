"""The entries of one memory: its pages, and the text of its MEMORY.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from core import paging
from documents.memory import rules
from documents.memory.results import MemoryPage
from documents.models import Memory, MemoryScope
from orgchart.models import Agent
from toolbox.caller import Caller

PAGE_SIZE = 100_000
"""Characters of one page; one entry always fits."""


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One entry of a memory."""

    id: int
    author_id: int
    text: str
    created_at: datetime


def read_memory(*, caller: Caller, scope: str, cursor: str | None, limit: int) -> MemoryPage:
    """The newest part of a memory as its MEMORY.md, oldest entry first; `next_cursor` goes back.

    Raises Denied: SCOPE_DENIED for an agent without a group, INVALID_PARAMS for the cursor.
    """
    caller.require(rules.can_read(scope, caller.agent))
    entries, more = newest_entries(
        caller=caller,
        scope=scope,
        limit=limit,
        size=PAGE_SIZE,
        before=paging.number(paging.decode(cursor)),
    )
    return {
        "scope": MemoryScope(scope),
        "path": rules.file_of(scope, caller.agent),
        "text": memory_text(caller, entries),
        "entries": len(entries),
        "next_cursor": paging.encode(str(entries[-1].id)) if more else None,
    }


def newest_entries(
    *, caller: Caller, scope: str, limit: int, size: int, before: int | None = None
) -> tuple[list[MemoryEntry], bool]:
    """The newest entries of a memory, newest first, of `size` characters at most; whether more."""
    rows = Memory.objects.filter(organisation_id=caller.organisation_id, scope=MemoryScope(scope))
    if scope == rules.AGENT:
        rows = rows.filter(agent_id=caller.agent.id)
    elif scope == rules.GROUP:
        rows = rows.filter(group__slug=caller.agent.group)
    if before is not None:
        rows = rows.filter(id__lt=before)
    found: list[MemoryEntry] = []
    left = size
    columns = rows.order_by("-id").values_list("id", "author_id", "text", "created_at")
    for row in columns[: limit + 1]:
        entry = MemoryEntry(*row)
        left -= len(entry.text)
        if len(found) == limit or (left < 0 and found):
            return found, True
        found.append(entry)
    return found, False


def memory_text(caller: Caller, entries: Sequence[MemoryEntry]) -> str:
    """The text of a MEMORY.md; `entries` are newest first."""
    return "\n".join(
        f"## {entry.created_at.astimezone(UTC):%Y-%m-%d %H:%M} {author_of(caller, entry.author_id)}"
        f"\n\n{entry.text}\n"
        for entry in reversed(entries)
    )


def author_of(caller: Caller, agent_id: int) -> str:
    """An author's address."""
    agent = caller.policy.by_id.get(agent_id)
    return agent.address if agent else Agent.objects.get(id=agent_id).handle
