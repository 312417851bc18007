"""The backlog: unowned tasks that have not begun, in the order of their rank."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import connection, transaction

from core import paging
from core.actors import Actor
from core.database import fetch_row
from core.decision import Code, refuse
from tasks.callers import charge_rows
from tasks.dependencies import lock_dependencies
from tasks.results import BacklogPage, RankedTasks
from tasks.rules.values import TaskUpdate
from tasks.rules.visibility import readership_of
from tasks.services import update_task
from toolbox.caller import Caller

BRANCH = """
(SELECT number, subject, required_role, task_type, rank, version, open_blockers, created_at
 FROM tasks_task
 WHERE organisation_id = %(organisation)s AND owner_id IS NULL AND status = 'pending' AND {after}
   AND (%(readable)s::bigint[] IS NULL OR subject_writer = ANY(%(readable)s::bigint[]))
 ORDER BY rank DESC, number LIMIT %(limit)s + 1)"""
SAME_RANK = BRANCH.format(after="rank = %(rank)s AND number > %(number)s")
LOWER_RANK = BRANCH.format(after="rank < %(rank)s")
PAGE = f"{SAME_RANK} UNION ALL {LOWER_RANK} ORDER BY rank DESC, number LIMIT %(limit)s + 1"

EDGE = """
SELECT {which}(rank) FROM tasks_task
WHERE organisation_id = %s AND owner_id IS NULL AND status = 'pending'
"""
MAX_RANK = 2**31 - 1
MAX_GIVEN_RANK = 1_000_000_000


def list_backlog(*, caller: Caller, cursor: str | None, limit: int) -> BacklogPage:
    """One page of the backlog that the caller may read, the highest rank first, then the oldest."""
    rank, number = _position(cursor)
    values = {
        "readable": readership_of(caller.policy, caller.agent).ids,
        "organisation": caller.organisation_id,
        "rank": rank,
        "number": number,
        "limit": limit,
    }
    with connection.cursor() as db:
        db.execute(PAGE, values)
        rows = db.fetchall()
    page, more = paging.cut(rows, limit, lambda row: f"{row[4]}:{row[0]}")
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
            for row in page
        ],
        "next_cursor": more,
    }


def _position(cursor: str | None) -> tuple[int, int]:
    position = paging.decode(cursor)
    if position is None:
        return MAX_RANK, 0
    try:
        rank, number = map(int, position.split(":"))
    except ValueError:
        rank, number = 0, -1
    if not (abs(rank) <= MAX_RANK and 0 <= number < 2**63):
        raise paging.unknown_cursor()
    return rank, number


def prioritize_tasks(
    *, caller: Actor, task_ids: Sequence[str], bottom: bool, now: datetime
) -> RankedTasks:
    """Rank tasks of the backlog before all others in the given order, or after all others.

    All or none. Raises Denied NOT_FOUND, NOT_YOURS for a task that is not in the backlog,
    QUOTA_EXCEEDED.
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
        lock_dependencies(caller.organisation_id)
        charge_rows(caller, len(task_ids), now)
        first = _edge(caller.organisation_id, bottom=bottom)
        first = first - 1 if bottom else first + len(task_ids)
        if abs(first) > MAX_GIVEN_RANK:
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
                update=TaskUpdate(rank=first - place, curates=True),
                now=now,
            )
            for place, task_id in enumerate(task_ids)
        ]
    return {"tasks": [{"id": task["id"], "version": task["version"]} for task in ranked]}


def _edge(organisation_id: int, *, bottom: bool) -> int:
    (found,) = fetch_row(EDGE.format(which="min" if bottom else "max"), [organisation_id])
    return int(found or 0)
