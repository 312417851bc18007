"""Pages of tasks, newest first; every combination of filters has its own index."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import connection

from core import paging
from core.decision import Code, Denied, refuse
from orgchart.policy.compiled import Agent, Policy
from tasks.results import TaskLine, TaskPage
from tasks.rules.ownership import unknown_owner
from tasks.rules.visibility import readership_of
from tasks.vocabulary import LISTED, Status
from toolbox.caller import Caller

BEFORE_ALL = 2**63 - 1

BRANCH = """
SELECT b.id, b.number FROM unnest(%(statuses)s::text[]) AS s(status) CROSS JOIN LATERAL (
    SELECT id, number FROM tasks_task
    WHERE organisation_id = %(organisation)s AND status = s.status AND number < %(before)s
      AND {condition}
    ORDER BY number DESC LIMIT %(limit)s + 1
) AS b"""
BY_WRITER = BRANCH.replace(
    " CROSS JOIN LATERAL",
    " CROSS JOIN unnest(%(readable)s::bigint[]) AS w(writer) CROSS JOIN LATERAL",
)
WRITTEN = "subject_writer = w.writer"
READABLE = "subject_writer = ANY(%(readable)s::bigint[])"

PAGE = """
WITH page AS MATERIALIZED (
    SELECT id, number FROM ({branches}) AS found ORDER BY number DESC LIMIT %(limit)s + 1
)
SELECT t.number, t.subject, t.status, o.handle, t.required_role, t.version, t.task_type,
    ARRAY(SELECT n.number FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocker_id
          WHERE d.blocked_id = t.id AND {shown} ORDER BY n.number)
FROM page JOIN tasks_task t ON t.id = page.id LEFT JOIN orgchart_agent o ON o.id = t.owner_id
ORDER BY t.number DESC"""

OF_ROLE = "required_role = %(role)s"
OF_ANY_ROLE = "required_role = ''"
ACROSS = (
    "NOT (required_role = '') AND owner_id IS NOT NULL AND cross_role AND owner_role = %(role)s"
)
OF_NAMESAKE = "owner_id = %(namesake)s"


@cache
def statement(owned: str, *, by_role: bool, namesake: bool, all_text: bool) -> str:
    """The query for one combination of filters; `owned` is '', 'by' (an agent) or 'none'.

    Without `all_text`, only of tasks that the reader may read. A list without filters walks the
    index of each writer, so that other agents' tasks cost nothing.
    """
    owner = {"": "true", "by": "owner_id = %(owner)s", "none": "owner_id IS NULL"}[owned]
    conditions = [owner]
    if by_role:
        wanted = [OF_ROLE, OF_ANY_ROLE]
        if owned != "none":
            wanted += [ACROSS, *([OF_NAMESAKE] if namesake else [])]
        conditions = [f"{owner} AND {one}" for one in wanted]
    branch, shown = BRANCH, "true"
    if not all_text:
        branch = BRANCH if owned or by_role else BY_WRITER
        readable = READABLE if branch is BRANCH else WRITTEN
        conditions = [f"{one} AND {readable}" for one in conditions]
        shown = f"n.{READABLE}"
    branches = " UNION ".join(branch.format(condition=one) for one in conditions)
    return PAGE.format(branches=branches, shown=shown)


def list_tasks(
    *,
    caller: Caller,
    role_filter: str | None = None,
    status: Status | None = None,
    owner: str | None = None,
    cursor: str | None = None,
    limit: int = paging.DEFAULT_LIMIT,
) -> TaskPage:
    """One page of the tasks that the caller may read, newest first (Spec: tasks 9).

    With `role_filter`: tasks that require this role, require none, or are owned by it. `owner` ''
    lists unowned tasks. Deleted tasks are listed only where `status` asks for them.
    Raises Denied INVALID_PARAMS for a role, owner or cursor that does not exist.
    """
    policy = caller.policy
    readable = readership_of(policy, caller.agent).ids
    held = find_owner(policy, owner)
    namesake = _agent_named(policy, role_filter)
    text = statement(
        "" if owner is None else "by" if held else "none",
        by_role=role_filter is not None and not (held and held.role == role_filter),
        namesake=namesake is not None,
        all_text=readable is None,
    )
    values: dict[str, Any] = {
        "organisation": policy.organisation_id,
        "statuses": [status] if status else list(LISTED),
        "before": _before(cursor),
        "limit": limit,
        "readable": readable,
        "role": role_filter,
        "owner": held.id if held else None,
        "namesake": namesake.id if namesake else None,
    }
    with connection.cursor() as db:
        db.execute(text, values)
        tasks = [_line(row) for row in db.fetchall()]
    more = len(tasks) > limit
    return {
        "tasks": tasks[:limit],
        "next_cursor": paging.encode(tasks[limit - 1]["id"]) if more else None,
    }


def find_owner(policy: Policy, name: str | None) -> Agent | None:
    """The agent whose tasks are asked for, active or not; None for no name. Raises Denied."""
    if not name:
        return None
    agent = policy.resolve(name)
    if agent is None:
        raise Denied(unknown_owner(name))
    return agent


def _agent_named(policy: Policy, role_filter: str | None) -> Agent | None:
    """An agent whose handle is the filter, without having that role (`owner === roleFilter`)."""
    if role_filter is None:
        return None
    agent = policy.agents.get(role_filter)
    if role_filter not in policy.roles and agent is None:
        problem = f"not one of {', '.join(sorted(policy.roles))}"
        raise refuse(
            Code.INVALID_PARAMS,
            f'Invalid roleFilter: "{role_filter[:64]}" is {problem}.',
            "name a role of your organisation, or leave roleFilter out",
            rule="roleFilter (spec: tasks 10)",
            roleFilter=problem,
        )
    return agent if agent and agent.role != role_filter else None


def _before(cursor: str | None) -> int:
    place = paging.decode(cursor)
    if place is None:
        return BEFORE_ALL
    if not (place.isascii() and place.isdigit() and len(place) <= 18):
        raise paging.unknown_cursor()
    return int(place or BEFORE_ALL)


def _line(row: tuple[Any, ...]) -> TaskLine:
    """One line of the list (Spec: tasks 11)."""
    number, subject, status, owner, required_role, version, task_type, blocked_by = row
    return {
        "id": str(number),
        "subject": subject,
        "status": Status(status),
        "owner": owner or "",
        "blockedBy": [str(blocker) for blocker in blocked_by],
        "requiredRole": required_role or None,
        "version": version,
        "taskType": task_type or None,
    }
