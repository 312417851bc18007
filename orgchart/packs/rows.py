"""Writing rows only where they differ, and saying which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def differing(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Set the values on the row; the names of those that were others before."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    return changed


def upsert(
    rows: Mapping[str, Row],
    wanted: Mapping[str, Row],
    names: list[str],
    changes: Changes,
    noun: str,
) -> dict[str, Row]:
    """Write what is new or different of the wanted rows; the rows as they stand afterwards."""
    standing: dict[str, Row] = {}
    fresh = [row for key, row in wanted.items() if key not in rows]
    for key, row in wanted.items():
        if key not in rows:
            changes.add("added", noun, key)
            standing[key] = row
            continue
        standing[key] = rows[key]
        changed = differing(rows[key], {name: getattr(row, name) for name in names})
        if changed:
            rows[key].save(update_fields=changed)
            changes.add("changed", noun, key, changed)
    if fresh:
        for row in fresh:
            row.save(force_insert=True)
    return standing


def delete_missing(
    rows: Mapping[str, Model], wanted: Mapping[str, Model], changes: Changes, noun: str
) -> None:
    """Delete the rows that are not wanted."""
    for key, row in rows.items():
        if key not in wanted:
            row.delete()
            changes.add("removed", noun, key)
