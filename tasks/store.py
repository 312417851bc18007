"""How a task is read and saved: one query with its neighbours, one statement with its event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from django.db import connection
from pydantic_core import from_json

from core.database import fetch_row
from core.decision import Code, Denied, Deny, refuse
from core.ids import row_id
from core.machines import Cte, Swap, swap
from ledger import sql as ledger_sql
from tasks.models import Task
from tasks.results import TaskResult
from tasks.rules.actors import TaskActor
from tasks.rules.changes import TaskChange
from tasks.rules.texts import readable_metadata, withheld_texts
from tasks.rules.values import TaskRow
from tasks.rules.visibility import EVERYTHING, Readership
from tasks.vocabulary import UNFINISHED_SQL, Status

COLUMNS = (
    "id", "number", "subject", "description", "active_form", "status", "owner_id", "metadata",
    "required_role", "task_type", "version", "rank", "open_blockers", "dependents", "cross_role",
    "owner_role", "workers", "completed_by_id", "approved_by", "approved_at", "claimed_at",
    "started_at", "completed_at", "lease_due_at", "created_by", "creator_id", "created_at",
    "updated_at", "subject_writer", "text_writers", "is_assigned",
)  # fmt: skip

NEIGHBOURS = f"""
ARRAY(SELECT ARRAY[n.number, n.subject_writer] FROM tasks_dependency d
      JOIN tasks_task n ON n.id = d.blocked_id
      WHERE d.blocker_id = t.id ORDER BY n.number) AS blocks,
ARRAY(SELECT ARRAY[n.number, n.subject_writer] FROM tasks_dependency d
      JOIN tasks_task n ON n.id = d.blocker_id
      WHERE d.blocked_id = t.id ORDER BY n.number) AS blocked_by,
CASE WHEN t.open_blockers = 0 THEN '{{}}' ELSE
ARRAY(SELECT n.number FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocker_id
      WHERE d.blocked_id = t.id AND n.status IN ({UNFINISHED_SQL}) ORDER BY n.number)
END AS waits_for"""

JSON = ("metadata", "text_writers")
SELECTED = ", ".join(f"t.{name}{'::text' if name in JSON else ''}" for name in COLUMNS)
LEFT_OUT = {"description": "''", "active_form": "''"} | dict.fromkeys(JSON, "'{}'")
SHORT = ", ".join(LEFT_OUT.get(name, f"t.{name}") for name in COLUMNS)

LOCK = """
SELECT 1 FROM tasks_task WHERE organisation_id = %(organisation)s AND number = %(number)s
FOR NO KEY UPDATE"""
READ = f"""
SELECT {SELECTED}, o.handle, {NEIGHBOURS}
FROM tasks_task t LEFT JOIN orgchart_agent o ON o.id = t.owner_id
WHERE t.organisation_id = %(organisation)s AND t.number = %(number)s"""
READ_MANY_SHORT = READ.replace(SELECTED, SHORT).replace(
    "t.number = %(number)s", "t.number = ANY(%(numbers)s) ORDER BY t.number"
)
"""Many tasks without their long texts: a thousand whole ones would fill the memory."""

READ_AFTER = (
    READ.replace("t.number = %(number)s", "t.number > %(number)s")
    + """
ORDER BY t.number LIMIT %(limit)s"""
)
NAMES = tuple(field.name for field in fields(TaskRow))
STATUS, METADATA, WRITERS, BLOCKS, BLOCKED_BY = (
    NAMES.index(name) for name in ("status", "metadata", "text_writers", "blocks", "blocked_by")
)

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
        if lock:
            # Lock first, then read: the read sees what others changed before the lock.
            fetch_row(LOCK, values)
        found = fetch_row(READ, values)
        if found is not None:
            return as_row(found)
    raise not_found(task_id)


def read_tasks_after(organisation_id: int, number: int, limit: int) -> list[TaskRow]:
    """Read the next tasks of an organisation after a number, by number."""
    values = {"organisation": organisation_id, "number": number, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(READ_AFTER, values)
        return [as_row(found) for found in cursor.fetchall()]


def read_short_tasks(organisation_id: int, numbers: Sequence[int]) -> list[TaskRow]:
    """Read tasks by number, without description, metadata and who wrote them."""
    values: dict[str, Any] = {"organisation": organisation_id, "numbers": list(numbers)}
    with connection.cursor() as cursor:
        cursor.execute(READ_MANY_SHORT, values)
        return [as_row(found) for found in cursor.fetchall()]


def read_for(actor: TaskActor, task_id: str, *, lock: bool = False) -> TaskRow:
    """Read a task that the actor may read, or that it owns (Spec: tasks 61).

    Raises Denied NOT_FOUND for an unknown id, and the same for a task the actor may not read.
    """
    row = read_task(actor.policy.organisation_id, task_id, lock=lock)
    if not (actor.readership.covers_task(row) or actor.is_agent(row.owner_id)):
        raise not_found(task_id)
    return row


def save_change(task: TaskRow, change: TaskChange) -> TaskRow | None:
    """Save a change and its event as one statement; None if the task changed after it was read.

    Also None if the new owner is no longer active, or another task depends on it by now.
    """
    now = change.event.at
    values = {**change.values, "updated_at": now}
    conditions: list[str] = []
    params: dict[str, Any] = {}
    then = [ledger_sql.event_cte(change.event)]
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
    listed[WRITERS] = from_json(listed[WRITERS])
    writers: dict[int, int] = {}
    for place in (BLOCKS, BLOCKED_BY):
        neighbours = dict(listed[place])
        listed[place] = list(neighbours)
        writers |= neighbours
    return TaskRow(*[*listed, writers])


def task_result(
    row: TaskRow, reads: Readership = EVERYTHING, warnings: Sequence[Deny] = ()
) -> TaskResult:
    """The task object (Spec: tasks 1) as one reader sees it.

    Text that the reader may not read is withheld, and the ids of such neighbours are left out.
    """
    withheld = withheld_texts(row, reads)
    result: TaskResult = {
        "id": str(row.number),
        "subject": "" if "subject" in withheld else row.subject,
        "description": "" if "description" in withheld else row.description,
        "activeForm": None if "activeForm" in withheld else row.active_form or None,
        "status": row.status,
        "owner": row.owner or "",
        "metadata": readable_metadata(row, reads),
        "blocks": [str(number) for number in reads.readable(row, row.blocks)],
        "blockedBy": [str(number) for number in reads.readable(row, row.blocked_by)],
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
    if withheld:
        result["withheld"] = withheld
    if warnings:
        result["warnings"] = [
            {"code": one.code.value, "message": one.message, "rule": one.rule} for one in warnings
        ]
    return result


def number_of(task_id: str) -> int | None:
    """The number in a task's id; None for text that is no task id."""
    return None if task_id.startswith("0") else row_id(task_id)


def not_found(task_id: str) -> Denied:
    """The refusal for an id that no task of this organisation has."""
    return refuse(
        Code.NOT_FOUND,
        f"there is no task {task_id[:32]!r}",
        "list the tasks with task_list",
        rule="tasks of the own organisation",
    )
