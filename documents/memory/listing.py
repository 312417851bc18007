"""Reading a memory, page by page, as agents do."""

from __future__ import annotations

from core import paging
from documents.memory import rules
from documents.memory.entries import memory_text, newest_entries
from documents.memory.files import take_in_edits
from documents.memory.owners import owner_of
from documents.memory.results import MemoryPage
from documents.models import MemoryScope
from toolbox.caller import Caller

PAGE_SIZE = 100_000
"""Characters of one page; one entry always fits."""


def read_memory(*, caller: Caller, scope: str, cursor: str | None, limit: int) -> MemoryPage:
    """The newest part of a memory as its MEMORY.md, oldest entry first; `next_cursor` goes back.

    Raises Denied: SCOPE_DENIED for an agent without a group, INVALID_PARAMS for the cursor.
    """
    caller.require(rules.can_read(scope, caller.agent))
    owner = owner_of(scope, caller.agent, caller.policy)
    take_in_edits(owner)
    entries, earlier = newest_entries(
        owner=owner,
        limit=limit,
        size=PAGE_SIZE,
        before=paging.number(cursor),
        writers=rules.memory_writers(caller.policy, caller.agent),
    )
    return {
        "scope": MemoryScope(scope),
        "path": owner.path,
        "text": memory_text(entries),
        "entries": len(entries),
        "next_cursor": None if earlier is None else paging.encode(str(earlier)),
    }
