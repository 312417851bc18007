"""How a task is read and saved: one query with its neighbours, one statement with its event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from django.db import connection
from pydantic_core import from_json

from core.decision import Code, Denied, refuse
from core.machines import Cte, Swap, swap
from ledger import sql as ledger_sql
from tasks.models import Task
from tasks.results import TaskResult
from tasks.rules.changes import TaskChange
from tasks.rules.values import TaskRow
from tasks.vocabulary import Status

COLUMNS = (
    "id", "number", "subject", "description", "active_form", "status", "owner_id", "metadata",
    "required_role", "task_type", "version", "rank", "open_blockers", "dependents", "cross_role",
    "owner_role", "workers", "completed_by_id", "approved_by", "approved_at", "claimed_at",
    "started_at", "completed_at", "lease_due_at", "created_by", "creator_id", "created_at",
    "updated_at",
)  # fmt: skip

NEIGHBOURS = """
ARRAY(SELECT n.number FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocked_id
      WHERE d.blocker_id = t.id ORDER BY n.number) AS blocks,
ARRAY(SELECT n.number FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocker_id
      WHERE d.blocked_id = t.id ORDER BY n.number) AS blocked_by,
CASE WHEN t.open_blockers = 0 THEN '{}' ELSE
ARRAY(SELECT n.number FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocker_id
      WHERE d.blocked_id = t.id AND n.status IN ('pending', 'in_progress') ORDER BY n.number)
END AS waits_for"""

SELECTED = ", ".join(f"t.{name}{'::text' if name == 'metadata' else ''}" for name in COLUMNS)

READ = f"""
SELECT {SELECTED}, o.handle, {NEIGHBOURS}
FROM tasks_task t LEFT JOIN orgchart_agent o ON o.id = t.owner_id
WHERE t.organisation_id = %(organisation)s AND t.number = %(number)s"""


NAMES = tuple(field.name for field in fields(TaskRow))
STATUS, METADATA = NAMES.index("status"), NAMES.index("metadata")

EXPERIENCE = """
INSERT INTO tasks_experience AS e (agent_id, task_type, completed)
SELECT %(experienced)s, task_type, 1 FROM swapped
ON CONFLICT (agent_id, task_type) DO UPDATE SET completed = e.completed + 1"""
ACTIVE = "EXISTS (SELECT 1 FROM orgchart_agent WHERE id = %(new_owner)s AND active)"
DEPENDENTS = "dependents = %(dependents)s"


def read_task(organisation_id: int, task_id: str, *, lock: bool = False) -> TaskRow:
    """Read one task of the organisation; `lock` holds it until the transaction ends.

    Raises Denied NOT_FOUND for an id that no task of this organisation has.
    """
    number = number_of(task_id)
    if number is not None:
        values = {"organisation": organisation_id, "number": number}
        with connection.cursor() as cursor:
            if lock:
                # Lock first, then read: the read sees what others changed before the lock.
                cursor.execute(
                    "SELECT 1 FROM tasks_task WHERE organisation_id = %(organisation)s "
                    "AND number = %(number)s FOR NO KEY UPDATE",
                    values,
                )
            cursor.execute(READ, values)
            found = cursor.fetchone()
        if found is not None:
            return as_row(found)
    raise not_found(task_id)


def save_change(task: TaskRow, change: TaskChange) -> TaskRow | None:
    """Save a change and its event as one statement; None if the task changed after it was read.

    Also None if the new owner is no longer active, or another task depends on it by now.
    """
    now = change.event.at
    values = {**change.values, "updated_at": now}
    conditions: list[str] = []
    params: dict[str, Any] = {}
    then = [Cte("recorded", ledger_sql.insert("ev", "swapped"), ledger_sql.params(change.event))]
    if change.owner is not None:
        conditions.append(ACTIVE)
        params["new_owner"] = change.owner.id
    if change.dependents is not None:
        conditions.append(DEPENDENTS)
        params["dependents"] = change.dependents
    if change.experience_of is not None:
        then.append(Cte("gained", EXPERIENCE, {"experienced": change.experience_of}))
    saved = swap(
        Swap(
            model=Task,
            key=task.id,
            version=task.version,
            state=("status", task.status, change.status) if change.status else None,
            values=values,
            condition=" AND ".join(conditions),
            params=params,
            returning=("task_type",),
        ),
        then,
    )
    if not saved:
        return None
    if change.status is not None:
        values["status"] = change.status
    if "owner_id" in values:
        values["owner"] = change.owner.handle if change.owner else None
    return replace(task, version=task.version + 1, **values)


def as_row(values: Sequence[Any]) -> TaskRow:
    """A row of READ as a value."""
    listed = list(values)
    listed[STATUS] = Status(listed[STATUS])
    listed[METADATA] = from_json(listed[METADATA])
    return TaskRow(*listed)


def task_result(row: TaskRow) -> TaskResult:
    """The task object of seed 001 §2.2; optional fields appear where they have a value."""
    result: TaskResult = {
        "id": str(row.number),
        "subject": row.subject,
        "description": row.description,
        "activeForm": row.active_form or None,
        "status": row.status,
        "owner": row.owner or "",
        "metadata": row.metadata,
        "blocks": [str(number) for number in row.blocks],
        "blockedBy": [str(number) for number in row.blocked_by],
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "requiredRole": row.required_role or None,
        "version": row.version,
        "taskType": row.task_type or None,
    }
    if row.claimed_at:
        result["claimedAt"] = row.claimed_at
    if row.started_at:
        result["startedAt"] = row.started_at
    if row.completed_at:
        result["completedAt"] = row.completed_at
    if row.lease_due_at:
        result["leaseDueAt"] = row.lease_due_at
    if row.approved_at:
        result["approvedBy"] = row.approved_by
        result["approvedAt"] = row.approved_at
    return result


def number_of(task_id: str) -> int | None:
    """The number in a task's id; None for text that is no task id."""
    plain = task_id.isascii() and task_id.isdigit() and len(task_id) <= 18
    return int(task_id) if plain and not task_id.startswith("0") else None


def not_found(task_id: str) -> Denied:
    """The refusal for an id that no task of this organisation has."""
    return refuse(
        Code.NOT_FOUND,
        f"there is no task {task_id[:32]!r}",
        "list the tasks with task_list",
        rule="tasks of the own organisation",
    )
