"""Texts of the events in a task's history, in the language of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext

from core.admin.refused import said_as_text

MAX_CHARACTERS = 200
"""Characters of one part: the whole is on the event's own page."""


def describe_event(details: Mapping[str, Any], to: str = "") -> str:
    """An event's details as one line; '' if there is nothing to show."""
    parts = [gettext("to %(agent)s") % {"agent": to}] if to else []
    parts += [describe(details[name]) for name, describe in PARTS.items() if details.get(name)]
    return "; ".join(
        part if len(part) <= MAX_CHARACTERS else part[: MAX_CHARACTERS - 1] + "…" for part in parts
    )


def _change(pair: Any, empty: str, name: Callable[[str], str] = str) -> str:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return name(str(pair).replace("_", " "))
    return " → ".join(name(str(end).replace("_", " ")) if end else empty for end in pair)


def _tasks(numbers: Any) -> str:
    return ", ".join(f"#{number}" for number in numbers)


PARTS: Mapping[str, Any] = {
    "status": lambda pair: _change(pair, "–", gettext),
    "owner": lambda pair: gettext("owner %(change)s") % {"change": _change(pair, gettext("none"))},
    "forceAssign": lambda _: gettext("across roles, by force"),
    "fields": lambda names: gettext("changed %(fields)s") % {"fields": ", ".join(map(str, names))},
    "addBlocks": lambda numbers: gettext("holds up %(tasks)s") % {"tasks": _tasks(numbers)},
    "addBlockedBy": lambda numbers: gettext("waits for %(tasks)s") % {"tasks": _tasks(numbers)},
    "blockedBy": lambda numbers: gettext("waits for %(tasks)s") % {"tasks": _tasks(numbers)},
    "with": lambda number: gettext("joined to #%(task)s") % {"task": number},
    "requiredRole": lambda role: gettext("requires %(role)s") % {"role": role},
    "taskType": lambda kind: gettext("type %(type)s") % {"type": kind},
    "why": lambda sentence: said_as_text(str(sentence)),
    "next_action": lambda sentence: said_as_text(str(sentence)),
    "version": lambda version: gettext("version %(number)s") % {"number": version},
}
