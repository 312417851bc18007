"""The organisation's memory as every agent's prompt quotes it (Spec: memory 1)."""

from __future__ import annotations

from collections.abc import Sequence

from documents.memory.entries import author_of, newest_entries
from toolbox.caller import Caller
from toolbox.quoting import QuotedText

ENTRIES, CHARACTERS = 20, 4_000
"""What a prompt holds at most; read_memory shows the rest."""


def global_memory_texts(caller: Caller) -> Sequence[QuotedText]:
    """The newest entries that the caller may read, oldest first."""
    entries, _ = newest_entries(caller=caller, scope="organisation", limit=ENTRIES, size=CHARACTERS)
    return [
        QuotedText(author_of(caller, entry.author_id), "memory of the organisation", entry.text)
        for entry in reversed(entries)
    ]
