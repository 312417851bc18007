"""The names of tools and task types that exist, for packs and people to refer to.

Plain data rather than a hook: rooms above declare it once, in `AppConfig.ready`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from orgchart.policy.vocabulary import ToolMode


class Source(StrEnum):
    """Why an agent has a tool (Spec: wire 6)."""

    ROLE = "role"
    BUILTIN = "builtin"
    SKILL = "skill"
    OFFICE = "office"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What the organisation knows of a tool."""

    source: Source
    modes: frozenset[ToolMode]


_entries: dict[str, CatalogueEntry] = {}
_task_types: set[str] = set()


def declare_tool(name: str, entry: CatalogueEntry) -> None:
    """Add a tool."""
    _entries[name] = entry


def known() -> dict[str, CatalogueEntry]:
    """Every declared tool by name."""
    return dict(_entries)


def bindable() -> frozenset[str]:
    """Tools that a role may list: neither built-ins nor tools of an office."""
    return frozenset(name for name, entry in _entries.items() if entry.source is Source.ROLE)


def declare_task_types(names: Iterable[str]) -> None:
    """Add task types."""
    _task_types.update(names)


def task_types() -> frozenset[str]:
    """Every declared task type."""
    return frozenset(_task_types)
