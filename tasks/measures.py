"""The measures of seed 001 §9.1, live: each with its definition, target and what was counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection


class Measure(StrEnum):
    """What is measured (seed 001 §9.1)."""

    ROLE_MATCH = "role_match"
    CONFLICTS = "conflict_rate"
    ACROSS_ROLES = "cross_role_claims"
    INVALID_TRANSITIONS = "invalid_transitions"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure over a period: `part` of `whole`; no whole where it is a mere count.

    `value` is in percent, or the count; None where there was nothing to measure.
    """

    measure: Measure
    title: str
    definition: str
    target: str
    part: int
    whole: int | None

    @property
    def value(self) -> float | None:
        """Percent of the whole, or the count."""
        if self.whole is None:
            return float(self.part)
        return 100 * self.part / self.whole if self.whole else None

    @property
    def reached(self) -> bool | None:
        """Whether the seed's target is met; None where there was nothing to measure."""
        value = self.value
        if value is None:
            return None
        match self.measure:
            case Measure.ROLE_MATCH:
                return value > 95
            case Measure.INVALID_TRANSITIONS:
                return value == 0
            case _:
                return value < 5


UPDATES = tuple(
    f"task.{what}" for what in ("updated", "claimed", "released", "started", "completed", "deleted")
)

CLAIMED = """
SELECT count(*) AS claimed, count(*) FILTER (WHERE cross_role) AS across FROM tasks_task
WHERE organisation_id = %(organisation)s AND claimed_at >= %(since)s AND claimed_at < %(until)s
"""
EVENTS = """
SELECT count(*) FILTER (WHERE action = ANY(%(updates)s)) AS updates,
       count(*) FILTER (WHERE code = 'VERSION_MISMATCH' AND action <> 'task.warned') AS refused,
       count(*) FILTER (WHERE code = 'VERSION_MISMATCH' AND action = 'task.warned') AS passed,
       count(*) FILTER (WHERE code = 'INVALID_TRANSITION') AS invalid
FROM ledger_event
WHERE organisation_id = %(organisation)s AND at >= %(since)s AND at < %(until)s
  AND (tool = 'task_update' OR action LIKE 'task.%%')
"""


def measure_tasks(organisation_id: int, *, since: datetime, until: datetime) -> list[Figure]:
    """The four figures of one organisation over a period, counted now."""
    values: dict[str, Any] = {
        "organisation": organisation_id,
        "since": since,
        "until": until,
        "updates": list(UPDATES),
    }
    with connection.cursor() as cursor:
        cursor.execute(CLAIMED, values)
        claimed, across = cursor.fetchone()
        cursor.execute(EVENTS, values)
        updates, refused, passed, invalid = cursor.fetchone()
    return [
        Figure(
            Measure.ROLE_MATCH,
            "Role match",
            "tasks claimed by a role that they require, or that require none, of all tasks claimed",
            "> 95 %",
            claimed - across,
            claimed,
        ),
        Figure(
            Measure.CONFLICTS,
            "Version conflicts",
            "updates whose expected version was stale, of all updates tried",
            "< 5 %",
            refused + passed,
            updates + refused,
        ),
        Figure(
            Measure.ACROSS_ROLES,
            "Cross-role claims",
            "tasks claimed by another role than they require, of all tasks claimed",
            "< 5 %",
            across,
            claimed,
        ),
        Figure(
            Measure.INVALID_TRANSITIONS,
            "Invalid transitions",
            "attempts at a transition that the state matrix does not allow",
            "0",
            invalid,
            None,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Duration:
    """How long completed tasks of one type, role or agent took, in seconds."""

    name: str
    count: int
    mean: float
    median: float


class By(StrEnum):
    """What durations are grouped by (seed 001 §10.2)."""

    TYPE = "type"
    ROLE = "role"
    AGENT = "agent"


GROUPS = {
    By.TYPE: "coalesce(nullif(t.task_type, ''), 'none')",
    By.ROLE: "r.name",
    By.AGENT: "a.handle",
}
DURATIONS = """
SELECT {group}, count(*), avg(extract(epoch FROM t.completed_at - {begun})),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM t.completed_at - {begun}))
FROM tasks_task t
LEFT JOIN orgchart_agent a ON a.id = t.completed_by_id
LEFT JOIN orgchart_role r ON r.id = a.role_id
WHERE t.organisation_id = %(organisation)s
  AND t.completed_at >= %(since)s AND t.completed_at < %(until)s AND {group} IS NOT NULL
GROUP BY 1 ORDER BY 1
"""
BEGUN = "coalesce(t.started_at, t.claimed_at, t.created_at)"


def durations(organisation_id: int, by: By, *, since: datetime, until: datetime) -> list[Duration]:
    """Mean and median time from start to completion, per type, role or agent."""
    values: dict[str, Any] = {"organisation": organisation_id, "since": since, "until": until}
    with connection.cursor() as cursor:
        cursor.execute(DURATIONS.format(group=GROUPS[by], begun=BEGUN), values)
        return [
            Duration(name, count, float(mean), float(median))
            for name, count, mean, median in cursor.fetchall()
        ]
