"""The backlog: tasks that nobody owns and that have not begun, ranked by whoever keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from core import paging
from core.actors import Actor
from core.decision import Code, refuse
from tasks import graph
from tasks.planning import Update
from tasks.services import update_task

BRANCH = """
(SELECT number, subject, required_role, task_type, rank, version, open_blockers, created_at
 FROM tasks_task
 WHERE organisation_id = %(organisation)s AND owner_id IS NULL AND status = 'pending' AND {after}
 ORDER BY rank DESC, number LIMIT %(limit)s + 1)"""
SAME_RANK = BRANCH.format(after="rank = %(rank)s AND number > %(number)s")
LOWER_RANK = BRANCH.format(after="rank < %(rank)s")
PAGE = f"{SAME_RANK} UNION ALL {LOWER_RANK} ORDER BY rank DESC, number LIMIT %(limit)s + 1"

EDGE = """
SELECT {which}(rank) FROM tasks_task
WHERE organisation_id = %s AND owner_id IS NULL AND status = 'pending'
"""
HIGHEST = 2**31 - 1
FURTHEST = 1_000_000_000


def list_backlog(*, caller: Actor, cursor: str | None, limit: int) -> dict[str, Any]:
    """One page of the backlog, the highest rank first, among equals the oldest."""
    rank, number = _place(cursor)
    values = {
        "organisation": caller.organisation_id,
        "rank": rank,
        "number": number,
        "limit": limit,
    }
    with connection.cursor() as db:
        db.execute(PAGE, values)
        rows = db.fetchall()
    shown = rows[:limit]
    last = shown[-1] if len(rows) > limit else None
    return {
        "tasks": [
            {
                "id": str(row[0]),
                "subject": row[1],
                "requiredRole": row[2] or None,
                "taskType": row[3] or None,
                "rank": row[4],
                "version": row[5],
                "blocked": row[6] > 0,
                "createdAt": row[7],
            }
            for row in shown
        ],
        "next_cursor": paging.encode(f"{last[4]}:{last[0]}") if last else None,
    }


def _place(cursor: str | None) -> tuple[int, int]:
    place = paging.decode(cursor)
    if place is None:
        return HIGHEST, 0
    try:
        rank, number = map(int, place.split(":"))
    except ValueError:
        rank, number = 0, -1
    if not (abs(rank) <= HIGHEST and 0 <= number < 2**63):
        raise paging.unknown_cursor()
    return rank, number


def prioritize_tasks(
    *, caller: Actor, task_ids: Sequence[str], bottom: bool, now: datetime
) -> dict[str, Any]:
    """Rank tasks of the backlog before all others in the given order, or after all others.

    All or none. Raises Denied NOT_FOUND, NOT_YOURS for a task that is not in the backlog.
    """
    if len(set(task_ids)) != len(task_ids):
        raise refuse(
            Code.INVALID_PARAMS,
            "taskIds: a task is named twice",
            "name each task once, in the order you want",
            rule="parameters of prioritize_tasks",
            taskIds="a task is named twice",
        )
    with transaction.atomic():
        graph.lock(caller.organisation_id)
        first = _edge(caller.organisation_id, bottom=bottom)
        first = first - 1 if bottom else first + len(task_ids)
        if abs(first) > FURTHEST:
            raise refuse(
                Code.INVALID_PARAMS,
                "the backlog has been re-ranked too often in one direction",
                "put some tasks at the other end first",
                rule="ranks",
            )
        ranked = [
            update_task(
                caller=caller,
                task_id=task_id,
                update=Update(rank=first - place, curates=True),
                now=now,
            )
            for place, task_id in enumerate(task_ids)
        ]
    return {"tasks": [{"id": task["id"], "version": task["version"]} for task in ranked]}


def _edge(organisation_id: int, *, bottom: bool) -> int:
    with connection.cursor() as cursor:
        cursor.execute(EDGE.format(which="min" if bottom else "max"), [organisation_id])
        found = cursor.fetchone()[0]
    return int(found or 0)
