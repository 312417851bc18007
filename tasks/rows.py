"""A task as it is read: one query with its neighbours; what the wire and the rules see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.db import connection
from pydantic_core import from_json

from core.decision import Code, Denied, refuse
from orgchart.policy.compiled import Agent, Policy
from tasks.facts import Facts
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


@dataclass(frozen=True, slots=True)
class Row:
    """A stored task with its owner's handle and its neighbours' numbers."""

    id: int
    number: int
    subject: str
    description: str
    active_form: str
    status: str
    owner_id: int | None
    metadata: dict[str, Any]
    required_role: str
    task_type: str
    version: int
    rank: int
    open_blockers: int
    dependents: int
    cross_role: bool
    owner_role: str
    workers: list[int]
    completed_by_id: int | None
    approved_by: str
    approved_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    lease_due_at: datetime | None
    created_by: str
    creator_id: int | None
    created_at: datetime
    updated_at: datetime
    owner: str | None
    blocks: list[int]
    blocked_by: list[int]
    waits_for: list[int]

    def owner_in(self, policy: Policy) -> Agent | None:
        """The owner as the policy knows it; one hired since the policy was read is plain."""
        if self.owner_id is None:
            return None
        known = policy.by_id.get(self.owner_id)
        return known or Agent(self.owner_id, self.owner or "", self.owner_role, "")

    def facts(self, policy: Policy) -> Facts:
        """What the rules look at."""
        creator = policy.by_id.get(self.creator_id) if self.creator_id is not None else None
        return Facts(
            id=str(self.number),
            status=Status(self.status),
            version=self.version,
            owner=self.owner_in(policy),
            required_role=self.required_role,
            task_type=self.task_type,
            creator=creator.handle if creator else "",
            open_blockers=tuple(map(str, self.waits_for)),
            needs_approval=self.task_type in policy.settings["approval_task_types"],
            approved=self.approved_at is not None,
            workers=frozenset(self.workers),
        )

    def shown(self) -> dict[str, Any]:
        """The task object of seed 001 §2.2; what it does not name is there where it has a value."""
        wire: dict[str, Any] = {
            "id": str(self.number),
            "subject": self.subject,
            "description": self.description,
            "activeForm": self.active_form or None,
            "status": self.status,
            "owner": self.owner or "",
            "metadata": self.metadata,
            "blocks": [str(number) for number in self.blocks],
            "blockedBy": [str(number) for number in self.blocked_by],
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "requiredRole": self.required_role or None,
            "version": self.version,
            "taskType": self.task_type or None,
        }
        extra = {
            "claimedAt": self.claimed_at,
            "startedAt": self.started_at,
            "completedAt": self.completed_at,
            "leaseDueAt": self.lease_due_at,
            "approvedBy": self.approved_by,
            "approvedAt": self.approved_at,
        }
        return wire | {name: value for name, value in extra.items() if value}


NAMES = tuple(field.name for field in fields(Row))
METADATA = NAMES.index("metadata")


def read_row(organisation_id: int, task_id: str, *, lock: bool = False) -> Row:
    """Read one task of the organisation; with `lock`, held until the transaction ends.

    Raises Denied NOT_FOUND for an id that no task of this organisation has.
    """
    number = number_of(task_id)
    if number is not None:
        values = {"organisation": organisation_id, "number": number}
        with connection.cursor() as cursor:
            if lock:
                # First the lock, then the read: what others changed before it is seen.
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


def as_row(values: Sequence[Any]) -> Row:
    """A row of READ as a value."""
    listed = list(values)
    listed[METADATA] = from_json(listed[METADATA])
    return Row(*listed)


def number_of(task_id: str) -> int | None:
    """The number that an id stands for; None for what no task can be called."""
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


def subject_of(policy: Policy, number: int) -> str:
    """What the ledger calls a task."""
    return f"task:{policy.organisation}/{number}"


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata after an update: given keys replace, null removes, the others stay."""
    both = {**old, **new}
    return {key: value for key, value in both.items() if value is not None or key not in new}
