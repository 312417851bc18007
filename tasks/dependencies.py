"""Dependencies between tasks: adding them, and releasing the tasks that waited for an ended one.

A change of several tasks holds the organisation's lock, taken before any row, so that no two
changes wait for each other; the trigger on dependencies takes the same lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection

from core.actions import Action
from core.actors import Actor
from core.database import (
    fetch_row,
    hold_lock,
    needs_transaction,
    violated_constraint,
    violated_values,
)
from core.decision import Allow, Code, Denied, Deny, refuse
from core.limits import BIGGEST_VERSION
from ledger.services import record
from orgchart.policy.compiled import Policy
from orgchart.policy.parties import BOARD_PARTY
from tasks.callers import charge_rows
from tasks.notifications import notify_unblocked
from tasks.rules.actors import TaskActor
from tasks.rules.changes import subject_of
from tasks.rules.ownership import already_ended, can_change
from tasks.rules.updates import effect_of
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import readership_of
from tasks.store import not_found, number_of, read_short_tasks
from tasks.vocabulary import UNFINISHED, UNFINISHED_SQL, Enforcement, Status

RULE = "dependencies (spec: tasks 30)"
NO_CIRCLE = "dependency_no_circle"
MOST = 200
"""Tasks that a task waits for: as many as a call names. Every list of tasks shows them."""
ROWS_OF_NOTICE = 3
"""A mail and two events."""
MOST_HELD = 1000
"""Tasks that wait for a task: its end counts all of them, and tells of each that is free."""

# One statement inserts all, so that the trigger looks for circles once.
INSERT = """
INSERT INTO tasks_dependency (organisation_id, blocker_id, blocked_id)
SELECT %(organisation)s, blocker, blocked
FROM unnest(%(blockers)s::bigint[], %(blocked)s::bigint[]) AS named(blocker, blocked)
ON CONFLICT (blocker_id, blocked_id) DO NOTHING
RETURNING blocker_id, blocked_id"""
# The counts read the table: the same transaction may have ended some of the tasks.
COUNT = """
UPDATE tasks_task t SET {column} = t.{column} + more.count
FROM (SELECT added.{end}, count(*)
      FROM unnest(%(blockers)s::bigint[], %(blocked)s::bigint[]) AS added(blocker, blocked)
      JOIN tasks_task other ON other.id = added.{other_end} AND other.status IN ({unfinished})
      GROUP BY added.{end}) AS more
WHERE t.id = more.{end}"""
COUNT_BLOCKERS = COUNT.format(
    column="open_blockers", end="blocked", other_end="blocker", unfinished=UNFINISHED_SQL
)
COUNT_DEPENDENTS = COUNT.format(
    column="dependents", end="blocker", other_end="blocked", unfinished=UNFINISHED_SQL
)
RELEASE = """
UPDATE tasks_task SET open_blockers = open_blockers - 1
WHERE id IN (SELECT blocked_id FROM tasks_dependency WHERE blocker_id = %(id)s)
RETURNING number, open_blockers, status"""
UNCOUNT_DEPENDENT = """
UPDATE tasks_task SET dependents = dependents - 1
WHERE id IN (SELECT blocker_id FROM tasks_dependency WHERE blocked_id = %(id)s)"""


@needs_transaction
def lock_dependencies(organisation_id: int) -> None:
    """Wait for the organisation's lock on changes of several tasks; held until the commit."""
    hold_lock("task dependencies", organisation_id)


@dataclass(frozen=True, slots=True)
class NamedNeighbours:
    """The tasks that an update names as rows, and the ids that no task has."""

    blocks: tuple[TaskRow, ...] = ()
    blocked_by: tuple[TaskRow, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def new_open_blockers(self) -> tuple[int, ...]:
        """Numbers of the unfinished tasks that the updated one would newly wait for."""
        return tuple(row.number for row in self.blocked_by if row.status in UNFINISHED)


@needs_transaction
def read_neighbours(
    actor: TaskActor, row: TaskRow, add_blocks: Sequence[str], add_blocked_by: Sequence[str]
) -> NamedNeighbours:
    """Lock and read the named tasks; dependencies that exist already are left out.

    A task that the actor may not read is as unknown as one that does not exist.
    """
    if not add_blocks and not add_blocked_by:
        return NamedNeighbours()
    named = {one: number_of(one) for one in (*add_blocks, *add_blocked_by)}
    numbers = sorted({number for number in named.values() if number is not None})
    organisation_id = actor.policy.organisation_id
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM tasks_task WHERE organisation_id = %s AND number = ANY(%s) "
            "ORDER BY id FOR NO KEY UPDATE",
            [organisation_id, numbers],
        )
    rows = {
        found.number: found
        for found in read_short_tasks(organisation_id, numbers)
        if actor.readership.covers_task(found)
    }

    def new_rows(ids: Sequence[str], existing: Sequence[int]) -> tuple[TaskRow, ...]:
        wanted = sorted({named[one] or 0 for one in ids} - set(existing))
        return tuple(rows[number] for number in wanted if number in rows)

    return NamedNeighbours(
        blocks=new_rows(add_blocks, row.blocks),
        blocked_by=new_rows(add_blocked_by, row.blocked_by),
        unknown=tuple(one for one, number in named.items() if number not in rows),
    )


def unseen_by_owner(named: NamedNeighbours, row: TaskRow, policy: Policy) -> frozenset[str]:
    """The ids of the named tasks that the owner of a task may not read."""
    reads = readership_of(policy, row.owner_in(policy) or BOARD_PARTY)
    return frozenset(
        str(one.number) for one in (*named.blocks, *named.blocked_by) if not reads.covers_task(one)
    )


def require_joinable(named: NamedNeighbours, row: TaskRow, actor: TaskActor) -> tuple[Deny, ...]:
    """Refuse dependencies on unknown, deleted or completed tasks, and on tasks of others.

    Returns what `enforcement` makes warnings (Spec: tasks 36). Raises Denied.
    """
    if named.unknown:
        raise not_found(named.unknown[0])
    for other in (*named.blocks, *named.blocked_by):
        if other.number == row.number:
            raise _circle(row, row)
        if other.status is Status.DELETED:
            raise Denied(already_ended(other, RULE))
    _require_few(row, waits_for=len(named.blocked_by), holds=len(named.blocks))
    for other in named.blocks:
        _require_few(other, waits_for=1)
    for other in named.blocked_by:
        _require_few(other, holds=1)
    warnings = _require_changeable(named.blocks, row, actor)
    waiting = [row] if named.new_open_blockers else []
    waiting += named.blocks if row.status in UNFINISHED else ()
    for one in waiting:
        if one.status is Status.COMPLETED:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"Task #{one.number} is completed and cannot wait for an unfinished task.",
                "create a new task that waits for it",
                rule=RULE,
            )
    return warnings


def _require_few(row: TaskRow, *, waits_for: int = 0, holds: int = 0) -> None:
    """Refuse what a list of tasks, or the end of the task, could not take any more."""
    if waits_for and len(row.blocked_by) + waits_for > MOST:
        raise refuse(
            Code.INVALID_PARAMS,
            f"Task #{row.number} would wait for more than {MOST} tasks.",
            "create a task that waits for some of them, and let this one wait for it instead",
            rule=RULE,
        )
    if holds and len(row.blocks) + holds > MOST_HELD:
        raise refuse(
            Code.INVALID_PARAMS,
            f"More than {MOST_HELD} tasks would wait for task #{row.number}.",
            "create a task that waits for this one, and let some of them wait for it instead",
            rule=RULE,
        )


def _require_changeable(
    others: Sequence[TaskRow], row: TaskRow, actor: TaskActor
) -> tuple[Deny, ...]:
    """Require that the actor may make each of these tasks wait; return warnings. Raises Denied."""
    found: list[Deny] = []
    for other in others:
        allowed = can_change(actor, other, TaskUpdate(add_blocked_by=(str(row.number),)))
        if not isinstance(allowed, Deny):
            continue
        effect = effect_of(allowed, actor)
        if effect is Enforcement.ENFORCE:
            raise Denied(allowed)
        if effect is Enforcement.WARN:
            found.append(allowed)
    return tuple(found)


@needs_transaction
def add_dependencies(
    named: NamedNeighbours, row: TaskRow, *, actor: TaskActor, caller: Actor, now: datetime
) -> None:
    """Insert the dependencies. Raises Denied where one would close a circle.

    The version of a task that has to wait grows; that of a task that blocks does not.
    """
    caller.require(Allow(RULE))
    pairs = [(other, row) for other in named.blocked_by] + [(row, other) for other in named.blocks]
    if pairs:
        charge_rows(caller, len(pairs), now)
        _insert_dependencies(pairs, caller)
    for other in named.blocks:
        _bump_version(other, caller, actor, row, now)


def _insert_dependencies(pairs: Sequence[tuple[TaskRow, TaskRow]], caller: Actor) -> None:
    """Insert pairs of blocker and blocked, and count them. Raises Denied for a circle."""
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "blockers": [blocker.id for blocker, _ in pairs],
        "blocked": [blocked.id for _, blocked in pairs],
    }
    with connection.cursor() as cursor:
        try:
            cursor.execute(INSERT, values)
        except IntegrityError as problem:
            if violated_constraint(problem) != NO_CIRCLE:
                raise
            closing = violated_values(problem)
            raise _circle(*next(p for p in pairs if [p[0].id, p[1].id] == closing)) from problem
        added = cursor.fetchall()
    count_dependencies(added)


def count_dependencies(added: Sequence[tuple[int, int]]) -> None:
    """Count new dependencies, ids of blocker and blocked, for both of their tasks.

    The table of dependencies is not read: PostgreSQL has no statistics of the rows that it has just
    taken in this transaction, and might read all of them for each task.
    """
    if not added:
        return
    blockers, blocked = zip(*added, strict=True)
    named = {"blockers": list(blockers), "blocked": list(blocked)}
    with connection.cursor() as cursor:
        cursor.execute(COUNT_BLOCKERS, named)
        cursor.execute(COUNT_DEPENDENTS, named)


def _circle(blocker: TaskRow, blocked: TaskRow) -> Denied:
    to = "itself" if blocker is blocked else f"#{blocked.number}"
    problem = f"the dependency #{blocker.number} -> {to} would close a circle"
    return refuse(
        Code.INVALID_PARAMS,
        f"{problem}; tasks in a circle could never start.",
        "look at blocks and blockedBy with task_get, and leave this dependency out",
        rule=RULE,
        dependency=problem,
    )


def _bump_version(
    other: TaskRow, caller: Actor, actor: TaskActor, row: TaskRow, now: datetime
) -> None:
    """Grow the version of a task that has to wait from now on, and record it."""
    (version,) = fetch_row(
        "UPDATE tasks_task SET version = least(version, %s) + 1, updated_at = %s "
        "WHERE id = %s RETURNING version",
        [BIGGEST_VERSION - 1, now, other.id],
    )
    owner = other.owner_in(actor.policy) or BOARD_PARTY
    shows = readership_of(actor.policy, owner).covers_task(row)
    record(
        Action.TASK_JOINED,
        by=caller,
        at=now,
        subject=subject_of(actor.policy, other.number),
        kind="task",
        for_agent_id=other.owner_id,
        details={"version": version, **({"with": str(row.number)} if shows else {})},
    )


@needs_transaction
def release_dependents(
    row: TaskRow, status: Status | None, *, actor: TaskActor, caller: Actor, now: datetime
) -> None:
    """Count an ended task out of its neighbours, and notify agents of tasks that are now free."""
    if row.status not in UNFINISHED:
        return
    with connection.cursor() as cursor:
        cursor.execute(UNCOUNT_DEPENDENT, {"id": row.id})
        cursor.execute(RELEASE, {"id": row.id})
        free = [
            number
            for number, open_blockers, state in cursor.fetchall()
            if not open_blockers and state in UNFINISHED
        ]
    if free:
        rows = read_short_tasks(actor.policy.organisation_id, sorted(free))
        told = notify_unblocked(rows, row, status, policy=actor.policy, now=now)
        charge_rows(caller, told * ROWS_OF_NOTICE, now)
