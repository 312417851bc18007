"""Pages of tasks, newest first; every combination of filters has its own index."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from django.db import connection

from core import paging
from core.decision import Code, Denied, refuse
from orgchart.policy.compiled import Agent, Policy
from tasks.results import TaskLine, TaskPage
from tasks.rules.ownership import unknown_owner
from tasks.rules.visibility import PEOPLE, readership_of, roles_to_require
from tasks.vocabulary import LISTED, ListIndex, Status
from toolbox.caller import Caller

BEFORE_ALL = 10**18

# Each status and each writer is a range of the one index that has the order, `number * -N`, so
# PostgreSQL never walks past tasks that the filters leave out.
BRANCH = """
SELECT b.id, b.number FROM unnest(%(statuses)s::text[]) AS s(status)
CROSS JOIN unnest(%(writers)s::bigint[]) AS w(writer) CROSS JOIN LATERAL (
    SELECT id, number FROM tasks_task
    WHERE organisation_id = %(organisation)s AND status = s.status AND subject_writer = w.writer
      AND number * -{index} > %(before)s::bigint * -{index} AND {condition}
    ORDER BY number * -{index} LIMIT %(limit)s + 1
) AS b"""

PAGE = """
WITH page AS MATERIALIZED (
    SELECT id, number FROM ({branches}) AS found ORDER BY number DESC LIMIT %(limit)s + 1
)
SELECT t.number,
    CASE WHEN t.subject_writer = ANY(%(readable)s::bigint[]) THEN t.subject ELSE '' END,
    t.status, o.handle, t.required_role, t.version, t.task_type,
    ARRAY(SELECT n.number FROM tasks_dependency d JOIN tasks_task n ON n.id = d.blocker_id
          WHERE d.blocked_id = t.id AND n.subject_writer = ANY(%(readable)s::bigint[])
          ORDER BY n.number)
FROM page JOIN tasks_task t ON t.id = page.id LEFT JOIN orgchart_agent o ON o.id = t.owner_id
ORDER BY t.number DESC"""

OF_ROLE = "required_role = %(role)s"
OF_ANY_ROLE = "required_role = ''"
ACROSS = (
    "NOT (required_role = '') AND owner_id IS NOT NULL AND cross_role AND owner_role = %(role)s"
)
OF_NAMESAKE = "owner_id = %(namesake)s"


@cache
def statement(owned: str, *, by_role: bool, namesake: bool) -> str:
    """The query for one combination of filters; `owned` is '', 'by' (an agent) or 'none'."""
    owner = {"": "true", "by": "owner_id = %(owner)s", "none": "owner_id IS NULL"}[owned]
    by = {"": ListIndex.WRITER, "by": ListIndex.OWNER, "none": ListIndex.UNOWNED}[owned]
    found = [(owner, by)]
    if by_role:
        by = {"": ListIndex.ROLE, "by": ListIndex.OWNER, "none": ListIndex.UNOWNED_ROLE}[owned]
        found = [(OF_ROLE, by), (OF_ANY_ROLE, by)]
        if owned != "none":
            found += [(ACROSS, ListIndex.OWNER if owned else ListIndex.ACROSS)]
            found += [(OF_NAMESAKE, ListIndex.OWNER)] if namesake else []
    branches = " UNION ".join(
        BRANCH.format(condition=f"{owner} AND {condition}", index=index.value)
        for condition, index in found
    )
    return PAGE.format(branches=branches)


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
    lists unowned tasks. Deleted tasks are listed only where `status` asks for them. With itself as
    `owner` the caller also finds those of its tasks that it may not read (Spec: tasks 61).
    Raises Denied INVALID_PARAMS for a role, owner or cursor that does not exist.
    """
    policy = caller.policy
    everyone, readable = [PEOPLE, *policy.by_id], readership_of(policy, caller.agent).ids
    if readable is None:
        readable = everyone
    held = find_owner(policy, owner, policy.contacts_of(caller.agent))
    namesake = _agent_named(policy, role_filter, caller.agent)
    text = statement(
        "" if owner is None else "by" if held else "none",
        by_role=role_filter is not None and not (held and held.role == role_filter),
        namesake=namesake is not None,
    )
    values: dict[str, Any] = {
        "organisation": policy.organisation_id,
        "statuses": [status] if status else list(LISTED),
        "before": _before(cursor),
        "limit": limit,
        "writers": everyone if held and held.id == caller.agent.id else readable,
        "readable": readable,
        "role": role_filter,
        "owner": held.id if held else None,
        "namesake": namesake.id if namesake else None,
    }
    with connection.cursor() as db:
        db.execute(text, values)
        tasks = [_line(row) for row in db.fetchall()]
    page, more = paging.cut(tasks, limit, lambda task: task["id"])
    return {"tasks": page, "next_cursor": more}


def find_owner(policy: Policy, name: str | None, known: Collection[str] = ()) -> Agent | None:
    """The agent whose tasks are asked for, active or not; None for no name. Raises Denied."""
    if not name:
        return None
    agent = policy.resolve(name)
    if agent is None:
        raise Denied(unknown_owner(name, known))
    return agent


def _agent_named(policy: Policy, role_filter: str | None, reader: Agent) -> Agent | None:
    """An agent whose handle is the filter, without having that role (`owner === roleFilter`).

    The refusal of another name suggests the roles of tasks that the reader could write.
    """
    if role_filter is None:
        return None
    agent = policy.agents.get(role_filter)
    if role_filter not in policy.roles and agent is None:
        problem = f"not one of {', '.join(roles_to_require(policy, reader))}"
        raise refuse(
            Code.INVALID_PARAMS,
            f'Invalid roleFilter: "{role_filter[:64]}" is {problem}.',
            "name a role of your organisation, or leave roleFilter out",
            rule="roleFilter (spec: tasks 10)",
            roleFilter=problem,
        )
    return agent if agent and agent.role != role_filter else None


def _before(cursor: str | None) -> int:
    place = paging.number(cursor)
    return BEFORE_ALL if place is None else place


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
