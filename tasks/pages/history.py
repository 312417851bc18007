"""Texts of the events in a task's history; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_CHARACTERS = 200
"""Characters of one part: the whole is on the event's own page."""


def describe_event(details: Mapping[str, Any], to: str = "") -> str:
    """An event's details as one line; '' if there is nothing to show."""
    parts = [f"to {to}"] if to else []
    parts += [describe(details[name]) for name, describe in PARTS.items() if details.get(name)]
    return "; ".join(
        part if len(part) <= MAX_CHARACTERS else part[: MAX_CHARACTERS - 1] + "…" for part in parts
    )


def _change(pair: Any, empty: str) -> str:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return str(pair).replace("_", " ")
    return " → ".join(str(end).replace("_", " ") or empty for end in pair)


def _tasks(numbers: Any) -> str:
    return ", ".join(f"#{number}" for number in numbers)


PARTS: Mapping[str, Any] = {
    "status": lambda pair: _change(pair, "–"),
    "owner": lambda pair: f"owner {_change(pair, 'none')}",
    "forceAssign": lambda _: "across roles, by force",
    "fields": lambda names: "changed " + ", ".join(map(str, names)),
    "addBlocks": lambda numbers: f"holds up {_tasks(numbers)}",
    "addBlockedBy": lambda numbers: f"waits for {_tasks(numbers)}",
    "blockedBy": lambda numbers: f"waits for {_tasks(numbers)}",
    "with": lambda number: f"joined to #{number}",
    "requiredRole": lambda role: f"requires {role}",
    "taskType": lambda kind: f"type {kind}",
    "why": str,
    "next_action": str,
    "version": lambda version: f"version {version}",
}
