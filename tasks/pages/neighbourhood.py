"""A task with what it waits for and what waits for it, read no further than can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from django.db import connection

from tasks.vocabulary import UNFINISHED, Status

MAX_TASKS = 60
"""Tasks of one drawing, its own task included."""

REACHED = """
WITH RECURSIVE reached(id) AS (
    SELECT %(task)s::bigint
    UNION
    SELECT d.{there} FROM reached CROSS JOIN LATERAL (
        SELECT {there} FROM tasks_dependency
        WHERE {here} = reached.id ORDER BY {there} LIMIT %(limit)s
    ) AS d
)
SELECT id FROM reached LIMIT %(limit)s
"""
"""Nearest first: rounds of the recursion run only as far as the limit asks for rows."""

TASKS = """
SELECT t.id, t.number, t.subject, t.status, coalesce(a.handle, ''), t.open_blockers
FROM tasks_task t LEFT JOIN orgchart_agent a ON a.id = t.owner_id WHERE t.id = ANY(%(ids)s)
"""
EDGES = """
SELECT blocker_id, blocked_id FROM tasks_dependency
WHERE blocked_id = ANY(%(ids)s) AND blocker_id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A task as it is drawn. `owner` is a handle, '' for an unowned task."""

    id: int
    number: int
    subject: str
    status: Status
    owner: str
    open_blockers: int

    @property
    def waits(self) -> bool:
        """Whether unfinished tasks hold it up."""
        return self.open_blockers > 0 and self.status in UNFINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The tasks by id, the dependencies among them as (blocker, blocked), and whether all came."""

    focus: int
    tasks: Mapping[int, Neighbour]
    edges: tuple[tuple[int, int], ...]
    whole: bool


def neighbourhood(task_pk: int) -> Neighbourhood:
    """Read at most MAX_TASKS tasks around one, the nearest of either side. Four queries."""
    ahead, behind = _reached(task_pk, ahead=True), _reached(task_pk, ahead=False)
    before, after = shares(len(ahead), len(behind), MAX_TASKS - 1)
    ids = [task_pk, *ahead[:before], *behind[:after]]
    with connection.cursor() as cursor:
        cursor.execute(TASKS, {"ids": ids})
        tasks = {
            pk: Neighbour(
                id=pk,
                number=number,
                subject=subject,
                status=Status(status),
                owner=owner,
                open_blockers=blockers,
            )
            for pk, number, subject, status, owner, blockers in cursor.fetchall()
        }
        cursor.execute(EDGES, {"ids": ids})
        edges = tuple((blocker, blocked) for blocker, blocked in cursor.fetchall())
    whole = (before, after) == (len(ahead), len(behind))
    return Neighbourhood(focus=task_pk, tasks=tasks, edges=edges, whole=whole)


def _reached(task_pk: int, *, ahead: bool) -> list[int]:
    here, there = ("blocked_id", "blocker_id") if ahead else ("blocker_id", "blocked_id")
    with connection.cursor() as cursor:
        values = {"task": task_pk, "limit": MAX_TASKS + 1}
        cursor.execute(REACHED.format(here=here, there=there), values)
        return [pk for (pk,) in islice(cursor.fetchall(), 1, None)]


def shares(ahead: int, behind: int, room: int) -> tuple[int, int]:
    """Divide the room between both sides: half each, and what one does not need is the other's."""
    before = min(ahead, max(room // 2, room - behind))
    return before, min(behind, room - before)
