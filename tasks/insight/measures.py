"""The measures of seed 001 §9.1, live: each with its definition, target and what was counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import Any

from django.db import connection

from tasks.rules import TRANSITION


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was counted in one stretch of time.

    `refused` and `passed` are stale versions that were refused, and that `warn` let pass.
    """

    claimed: int = 0
    across: int = 0
    updates: int = 0
    refused: int = 0
    passed: int = 0
    invalid: int = 0
    created: int = 0
    started: int = 0
    completed: int = 0

    def __add__(self, other: Counts) -> Counts:
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Counts(**both)

    @property
    def conflicts(self) -> int:
        """Updates whose expected version was stale."""
        return self.refused + self.passed

    @property
    def tried(self) -> int:
        """All updates that were tried: those that passed, and those that were refused so."""
        return self.updates + self.refused


UPDATES = tuple(
    f"task.{what}" for what in ("updated", "claimed", "released", "started", "completed", "deleted")
)

CLAIMED = """
SELECT date_bin(%(step)s, claimed_at, %(since)s), count(*) AS claimed,
       count(*) FILTER (WHERE cross_role) AS across
FROM tasks_task
WHERE organisation_id = %(organisation)s AND claimed_at >= %(since)s AND claimed_at < %(until)s
GROUP BY 1
"""
TOOLS = "tool IN ('task_update', 'assign_task', 'manage_backlog')"
"""The tools that update tasks: what they did and what they were refused is one whole."""

EVENTS = f"""
SELECT date_bin(%(step)s, at, %(since)s),
       count(*) FILTER (WHERE action = ANY(%(updates)s) AND {TOOLS}) AS updates,
       count(*) FILTER (
           WHERE code = 'VERSION_MISMATCH' AND action <> 'task.warned' AND {TOOLS}) AS refused,
       count(*) FILTER (
           WHERE code = 'VERSION_MISMATCH' AND action = 'task.warned' AND {TOOLS}) AS passed,
       count(*) FILTER (WHERE action = 'task.created') AS created,
       count(*) FILTER (WHERE action = 'task.started') AS started,
       count(*) FILTER (WHERE action = 'task.completed') AS completed
FROM ledger_event
WHERE organisation_id = %(organisation)s AND at >= %(since)s AND at < %(until)s
  AND ({TOOLS} OR action LIKE 'task.%%')
GROUP BY 1
"""
INVALID = f"""
SELECT date_bin(%(step)s, at, %(since)s), count(*) AS invalid
FROM ledger_event
WHERE organisation_id = %(organisation)s AND at >= %(since)s AND at < %(until)s
  AND code = 'INVALID_TRANSITION' AND {TOOLS} AND details ->> 'rule' = %(transition)s
GROUP BY 1
"""


def count_tasks(
    organisation_id: int, *, since: datetime, until: datetime, step: timedelta | None = None
) -> list[Counts]:
    """What happened to an organisation's tasks in each stretch of a period, the first one first.

    Without `step` the whole period is one stretch. Three queries, whatever the number of stretches.
    """
    step = step or max(until - since, timedelta(seconds=1))
    values: dict[str, Any] = {
        "organisation": organisation_id,
        "since": since,
        "until": until,
        "step": step,
        "updates": list(UPDATES),
        "transition": TRANSITION,
    }
    found = [Counts() for _ in range(max(1, ceil((until - since) / step)))]
    with connection.cursor() as cursor:
        for query in (CLAIMED, EVENTS, INVALID):
            cursor.execute(query, values)
            names = [column.name for column in cursor.description[1:]]
            for start, *counted in cursor.fetchall():
                found[(start - since) // step] += Counts(**dict(zip(names, counted, strict=True)))
    return found


def measure_tasks(organisation_id: int, *, since: datetime, until: datetime) -> list[Figure]:
    """The four figures of one organisation over a period, counted now."""
    return figures_of(count_tasks(organisation_id, since=since, until=until)[0])


def figures_of(counts: Counts) -> list[Figure]:
    """The four figures of what was counted (seed 001 §9.1)."""
    return [
        Figure(
            Measure.ROLE_MATCH,
            "Role match",
            "tasks claimed by a role that they require, or that require none, of all tasks claimed",
            "> 95 %",
            counts.claimed - counts.across,
            counts.claimed,
        ),
        Figure(
            Measure.CONFLICTS,
            "Version conflicts",
            "updates whose expected version was stale, of all updates that agents tried",
            "< 5 %",
            counts.conflicts,
            counts.tried,
        ),
        Figure(
            Measure.ACROSS_ROLES,
            "Cross-role claims",
            "tasks claimed by another role than they require, of all tasks claimed",
            "< 5 %",
            counts.across,
            counts.claimed,
        ),
        Figure(
            Measure.INVALID_TRANSITIONS,
            "Invalid transitions",
            "attempts at a transition that the state matrix does not allow",
            "0",
            counts.invalid,
            None,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Duration:
    """How long completed tasks of one type, role or agent took, in seconds.

    `mean` and `median` from start to completion; `waited` the median from creation to the last
    claim, None where nobody had claimed them.
    """

    name: str
    count: int
    mean: float
    median: float
    waited: float | None


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
WITH ended AS (
    SELECT task_type, completed_by_id,
           extract(epoch FROM completed_at - coalesce(started_at, claimed_at, created_at))::float8
               AS took,
           extract(epoch FROM claimed_at - created_at)::float8 AS waited
    FROM tasks_task
    WHERE organisation_id = %(organisation)s
      AND completed_at >= %(since)s AND completed_at < %(until)s
    ORDER BY completed_at DESC LIMIT %(most)s
)
SELECT {group}, count(*), avg(took), percentile_cont(0.5) WITHIN GROUP (ORDER BY took),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY waited)
FROM ended t
LEFT JOIN orgchart_agent a ON a.id = t.completed_by_id
LEFT JOIN orgchart_role r ON r.id = a.role_id
WHERE {group} IS NOT NULL
GROUP BY 1 ORDER BY 1
"""


def durations(
    organisation_id: int, by: By, *, since: datetime, until: datetime, most: int | None = None
) -> list[Duration]:
    """Mean and median time from start to completion, per type, role or agent.

    With `most`, of that many tasks, the last ones completed.
    """
    values: dict[str, Any] = {
        "organisation": organisation_id,
        "since": since,
        "until": until,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(DURATIONS.format(group=GROUPS[by]), values)
        return [Duration(*found) for found in cursor.fetchall()]
