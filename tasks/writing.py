"""The one statement that changes a task: where nobody was faster, with its event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db import connection
from pydantic_core import to_json

from core.events import Event
from ledger import sql as ledger_sql
from tasks.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Columns to set, who gains experience by it, and what else must hold at that moment.

    A new owner must be active; a task that ends must have as many waiting for it as were seen,
    because joining another to it does not count as a change of it.
    """

    sets: Mapping[str, Any] = field(default_factory=dict)
    experience_of: int | None = None
    new_owner_id: int | None = None
    dependents: int | None = None


@cache
def statement(columns: tuple[str, ...], *, claims: bool, ends: bool, completes: bool) -> str:
    """The compare-and-swap for a set of columns (design: version-checked updates)."""
    casts = {"metadata": "::jsonb", "workers": "::bigint[]"}
    sets = "".join(f"{name} = %(set_{name})s{casts.get(name, '')}, " for name in columns)
    still = "AND dependents = %(dependents)s" if ends else ""
    active = (
        "AND EXISTS (SELECT 1 FROM orgchart_agent WHERE id = %(new_owner)s AND active)"
        if claims
        else ""
    )
    experience = """, ex AS (
        INSERT INTO tasks_experience AS e (agent_id, task_type, completed)
        SELECT %(experienced)s, task_type, 1 FROM done
        ON CONFLICT (agent_id, task_type) DO UPDATE SET completed = e.completed + 1
    )"""
    return f"""
    WITH done AS (
        UPDATE tasks_task SET {sets} version = version + 1, updated_at = %(now)s
        WHERE id = %(id)s AND version = %(seen)s {still} {active}
        RETURNING version, task_type
    ){experience if completes else ""},
    ev AS ({ledger_sql.insert("ev", "done")} RETURNING seq)
    SELECT version FROM done, ev
    """


def swap(row: Row, write: Write, event: Event) -> bool:
    """Write the change and its event if the task is still at the version that was read."""
    columns = tuple(sorted(write.sets))
    text = statement(
        columns,
        claims=write.new_owner_id is not None,
        ends=write.dependents is not None,
        completes=write.experience_of is not None,
    )
    values = {f"set_{name}": _value(name, write.sets[name]) for name in columns}
    values |= ledger_sql.params(event)
    values |= {
        "id": row.id,
        "seen": row.version,
        "now": event.at,
        "new_owner": write.new_owner_id,
        "dependents": write.dependents,
        "experienced": write.experience_of,
    }
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchone() is not None


def _value(name: str, value: Any) -> Any:
    return to_json(value).decode() if name == "metadata" else value
