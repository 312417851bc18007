"""Reading a memory: its pages for agents, and the organisation's for the prompt."""

from __future__ import annotations

from core import paging
from documents.memory import rules
from documents.memory.entries import GLOBAL_SIZE, memory_text, newest_entries
from documents.memory.files import take_in_edits
from documents.memory.owners import organisation_memory, owner_of
from documents.memory.results import MemoryPage
from documents.models import MemoryScope
from orgchart.policy.compiled import Policy
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
    entries, more = newest_entries(
        owner=owner, limit=limit, size=PAGE_SIZE, before=paging.number(paging.decode(cursor))
    )
    return {
        "scope": MemoryScope(scope),
        "path": owner.path,
        "text": memory_text(entries),
        "entries": len(entries),
        "next_cursor": paging.encode(str(entries[-1].id)) if more else None,
    }


def global_memory(policy: Policy) -> str:
    """The newest part of the organisation's memory, for the prompt of its agents; '' if empty."""
    owner = organisation_memory(policy)
    take_in_edits(owner)
    entries, _ = newest_entries(owner=owner, limit=100, size=GLOBAL_SIZE)
    return memory_text(entries)
