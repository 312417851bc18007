"""Writing rows only where they differ, and saying which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Model

Row = TypeVar("Row", bound=Model)


@dataclass(slots=True)
class Changes:
    """Sentences on the rows that were written."""

    lines: list[str] = field(default_factory=list)

    def add(self, verb: str, noun: str, name: str, columns: Iterable[str] = ()) -> None:
        """Note one row."""
        which = ", ".join(columns)
        self.lines.append(f"{noun} {name} {verb}{f': {which}' if which else ''}")


SETS = frozenset({"tools", "denied_tools", "offices", "senders", "types", "skills"})
"""Columns that hold names in no order."""


def differing(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Set the values on the row; the names of those that were others before."""
    changed = [name for name, value in values.items() if not _same(row, name, value)]
    for name in changed:
        setattr(row, name, values[name])
    return changed


def _same(row: Model, name: str, value: Any) -> bool:
    present = getattr(row, name)
    if name in SETS and present is not None and value is not None:
        return set(present) == set(value)
    return bool(present == value)


def upsert(
    new: Callable[..., Row],
    rows: Mapping[str, Row],
    wanted: Mapping[str, Mapping[str, Any]],
    changes: Changes,
    noun: str,
) -> dict[str, Row]:
    """Write the rows of the wanted values that are new or different; every wanted row."""
    found: dict[str, Row] = {}
    for key, values in wanted.items():
        if key not in rows:
            found[key] = new(**values)
            found[key].save(force_insert=True)
            changes.add("added", noun, key)
            continue
        found[key] = rows[key]
        if changed := differing(rows[key], values):
            rows[key].save(update_fields=changed)
            changes.add("changed", noun, key, changed)
    return found


def delete_missing(
    rows: Mapping[str, Model], wanted: Collection[str], changes: Changes, noun: str
) -> None:
    """Delete the rows that are not wanted."""
    for key, row in rows.items():
        if key not in wanted:
            row.delete()
            changes.add("removed", noun, key)
