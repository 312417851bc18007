"""What was measured: counts and durations of one organisation's tasks, from the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import Any

from django.db import connection

from tasks.insight.figures import Counts, Figure, figures_of
from tasks.rules.updates import TRANSITION

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


@dataclass(frozen=True, slots=True)
class Duration:
    """How long completed tasks of one type, role or agent took, in seconds.

    `mean` and `median` from start to completion; `waited` the median from creation to the last
    claim, None for tasks that were never claimed.
    """

    name: str
    count: int
    mean: float
    median: float
    waited: float | None


class By(StrEnum):
    """What durations are grouped by (Spec: tasks 47)."""

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
           extract(epoch FROM completed_at - started_at)::float8 AS took,
           extract(epoch FROM claimed_at - created_at)::float8 AS waited
    FROM tasks_task
    WHERE organisation_id = %(organisation)s
      AND completed_at >= %(since)s AND completed_at < %(until)s AND started_at IS NOT NULL
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

    With `most`, of that many tasks, the last ones completed. Tasks that were imported completed
    are left out: it is not known when their work began.
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
