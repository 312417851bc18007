"""Which tools exist, as far as the organisation needs to know: names, and who may bind them.

Rooms above declare tools; the door hands their names down here when it starts, so that packs and
people are told of a tool that does not exist without this room knowing any tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orgchart.vocabulary import ToolMode


class Source(StrEnum):
    """Why an agent has a tool (wire: source)."""

    ROLE = "role"
    BUILTIN = "builtin"
    SKILL = "skill"
    OFFICE = "office"


@dataclass(frozen=True, slots=True)
class Entry:
    """What the organisation knows of a tool."""

    source: Source
    modes: frozenset[ToolMode]


_entries: dict[str, Entry] = {}


def declare(name: str, entry: Entry) -> None:
    """Tell the organisation that a tool exists."""
    _entries[name] = entry


def known() -> dict[str, Entry]:
    """Every declared tool by name."""
    return dict(_entries)


def bindable() -> frozenset[str]:
    """Tools that a role may list: neither built-ins nor those that come with an office."""
    return frozenset(name for name, entry in _entries.items() if entry.source is Source.ROLE)
