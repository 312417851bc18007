"""Recommendations: an agent's best next tasks, read by the index that orders them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import connection

from tasks.insight.recommendation_order import Candidate, Taker, best, reasons
from tasks.models import Experience
from tasks.results import Recommendations
from tasks.rules.actors import read_permissions
from tasks.rules.visibility import readership_of
from tasks.vocabulary import UNFINISHED_SQL, Status, TaskType
from toolbox.caller import Caller

# One short walk of the index `task_takeable` for each role and type that the agent may take.
TAKEABLE = f"""
SELECT t.number, t.required_role, t.task_type, t.rank, t.dependents, t.status, t.created_at,
       t.subject, t.version,
       CASE WHEN t.dependents = 0 OR %(readable)s::bigint[] IS NULL THEN t.dependents ELSE
           (SELECT count(*) FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocked_id
            WHERE d.blocker_id = t.id AND n.status IN ({UNFINISHED_SQL})
              AND n.subject_writer = ANY(%(readable)s::bigint[])) END
FROM unnest(%(roles)s::text[]) AS r(role) CROSS JOIN unnest(%(types)s::text[]) AS k(kind)
CROSS JOIN LATERAL (
    SELECT * FROM tasks_task
    WHERE organisation_id = %(organisation)s AND required_role = r.role AND task_type = k.kind
      AND owner_id IS NULL AND status IN ({UNFINISHED_SQL}) AND open_blockers = 0
      AND (%(readable)s::bigint[] IS NULL OR subject_writer = ANY(%(readable)s::bigint[]))
    ORDER BY rank DESC, dependents DESC, number LIMIT %(limit)s
) AS t
"""


def recommend_tasks(*, caller: Caller, limit: int, now: datetime) -> Recommendations:
    """The caller's best next tasks with their reasons (Spec: tasks 43); claims nothing.

    A reason counts only the waiting tasks that the caller may read.
    """
    claims = read_permissions(caller.role.permissions).claims
    types = sorted(claims if claims is not None else map(str, TaskType))
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "roles": sorted({"", caller.agent.role, caller.handle}),
        "types": ["", *types],
        "limit": limit,
        "readable": readership_of(caller.policy, caller.agent).ids,
    }
    with connection.cursor() as cursor:
        cursor.execute(TAKEABLE, values)
        rows = {row[0]: row for row in cursor.fetchall()}
    taker = Taker(
        handle=caller.handle,
        role=caller.agent.role,
        claims=claims,
        experience=_experience(caller.agent.id),
    )
    found = best([_candidate(row) for row in rows.values()], taker, limit)
    return {
        "tasks": [
            {
                "id": str(task.number),
                "subject": rows[task.number][7],
                "status": Status(rows[task.number][5]),
                "requiredRole": task.required_role or None,
                "taskType": task.task_type or None,
                "version": rows[task.number][8],
                "reasons": reasons(replace(task, dependents=rows[task.number][9]), taker, now),
            }
            for task in found
        ]
    }


def _candidate(row: tuple[Any, ...]) -> Candidate:
    number, required_role, task_type, rank, dependents, status, created_at, *_ = row
    return Candidate(
        number=number,
        required_role=required_role,
        task_type=task_type,
        rank=rank,
        dependents=dependents,
        started=status == Status.IN_PROGRESS,
        created_at=created_at,
    )


def _experience(agent_id: int) -> dict[str, int]:
    known = Experience.objects.filter(agent_id=agent_id)
    return dict(known.values_list("task_type", "completed"))
