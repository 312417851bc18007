"""Which tools and kinds of work exist, as far as the organisation needs to know: their names.

Rooms above declare them; they are handed down here when the door starts, so that packs and people
are told of a tool that does not exist without this room knowing any tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from orgchart.policy.vocabulary import ToolMode


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
_task_types: set[str] = set()


def declare(name: str, entry: Entry) -> None:
    """Tell the organisation that a tool exists."""
    _entries[name] = entry


def known() -> dict[str, Entry]:
    """Every declared tool by name."""
    return dict(_entries)


def bindable() -> frozenset[str]:
    """Tools that a role may list: neither built-ins nor those that come with an office."""
    return frozenset(name for name, entry in _entries.items() if entry.source is Source.ROLE)


def declare_task_types(names: Iterable[str]) -> None:
    """Tell the organisation what kinds of work exist."""
    _task_types.update(names)


def task_types() -> frozenset[str]:
    """Every declared kind of work."""
    return frozenset(_task_types)
