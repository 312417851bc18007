"""The organisation's memory as every agent's prompt quotes it (Spec: memory 1)."""

from __future__ import annotations

from collections.abc import Sequence

from documents.memory.entries import GLOBAL_SIZE, MemoryEntry, newest_entries
from documents.memory.files import take_in_edits
from documents.memory.owners import organisation_memory
from documents.memory.rules import memory_writers
from toolbox.caller import Caller
from toolbox.quoting import QuotedText

ENTRIES = 20
"""What a prompt holds at most; read_memory shows the rest."""


def global_memory_texts(caller: Caller) -> Sequence[QuotedText]:
    """The newest entries, oldest first, each with its author."""
    owner = organisation_memory(caller.policy)
    take_in_edits(owner)
    writers = memory_writers(caller.policy, caller.agent)
    entries, _ = newest_entries(owner=owner, limit=ENTRIES, size=GLOBAL_SIZE, writers=writers)
    return [_quoted(entry) for entry in reversed(entries)]


def _quoted(entry: MemoryEntry) -> QuotedText:
    author = f"{entry.author}, {'a person' if entry.person else 'an agent'}"
    return QuotedText(author, "memory of the organisation", entry.text)
