"""What waits for what: joining tasks, and telling those that a finished task set free.

Whoever changes more than one task holds the organisation's lock for it, taken before any row, so
that no two wait for each other; the trigger on dependencies takes the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection

from core.actions import Action
from core.actors import Actor
from core.decision import Allow, Code, Denied, Deny, refuse
from ledger.services import record
from tasks import announcing
from tasks.facts import Change
from tasks.hands import enforcement_of
from tasks.ownership import ended, may_change
from tasks.parties import Hand
from tasks.rows import READ, Row, as_row, not_found, number_of, subject_of
from tasks.rules import SOFT
from tasks.vocabulary import UNFINISHED, Enforcement, Status

LOCK = "SELECT pg_advisory_xact_lock(7001, hashint8(%s))"
RULE = "dependencies (decisions.md § Tasks)"

MANY = READ.replace("t.number = %(number)s", "t.number = ANY(%(numbers)s)")


def lock(organisation_id: int) -> None:
    """Wait for the organisation's lock on changes of several tasks; held until the commit."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [organisation_id])


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The tasks that an update names, as rows, and the ids among them that nobody has."""

    blocks: tuple[Row, ...] = ()
    blocked_by: tuple[Row, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def new_open_blockers(self) -> tuple[str, ...]:
        """Ids of unfinished tasks that this one would newly wait for."""
        return tuple(str(row.number) for row in self.blocked_by if row.status in UNFINISHED)


def neighbours_of(
    hand: Hand, row: Row, add_blocks: Sequence[str], add_blocked_by: Sequence[str]
) -> Neighbours:
    """Lock and read the named tasks; joins that exist already are left out."""
    if not add_blocks and not add_blocked_by:
        return Neighbours()
    named = {one: number_of(one) for one in (*add_blocks, *add_blocked_by)}
    numbers = sorted({number for number in named.values() if number is not None})
    values: dict[str, Any] = {
        "organisation": hand.policy.organisation_id,
        "numbers": numbers,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM tasks_task WHERE organisation_id = %(organisation)s "
            "AND number = ANY(%(numbers)s) ORDER BY id FOR NO KEY UPDATE",
            values,
        )
        cursor.execute(MANY, values)
        rows = {found.number: found for found in map(as_row, cursor.fetchall())}

    def chosen(ids: Sequence[str], have: Sequence[int]) -> tuple[Row, ...]:
        wanted = sorted({named[one] or 0 for one in ids} - set(have))
        return tuple(rows[number] for number in wanted if number in rows)

    return Neighbours(
        blocks=chosen(add_blocks, row.blocks),
        blocked_by=chosen(add_blocked_by, row.blocked_by),
        unknown=tuple(one for one, number in named.items() if number not in rows),
    )


def require_all(found: Neighbours, row: Row, hand: Hand, caller: Actor) -> None:
    """Refuse what may not be joined: unknown or deleted tasks, ones that somebody else holds."""
    if found.unknown:
        raise not_found(found.unknown[0])
    mine = row.facts(hand.policy)
    for other in (*found.blocks, *found.blocked_by):
        if other.number == row.number:
            raise _circle(row)
        if other.status == Status.DELETED:
            raise Denied(ended(other.facts(hand.policy), RULE))
    for other in found.blocks:
        allowed = may_change(hand, other.facts(hand.policy), Change(edits=True))
        soft = enforcement_of(hand.policy) is not Enforcement.ENFORCE
        if isinstance(allowed, Deny) and not (soft and allowed.code in SOFT):
            raise Denied(allowed)
    waiting = [row] if found.new_open_blockers else []
    waiting += found.blocks if mine.status in UNFINISHED else ()
    for one in waiting:
        if one.status == Status.COMPLETED:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"Task #{one.number} is completed and cannot wait for an unfinished task.",
                "create a new task that waits for it",
                rule=RULE,
            )
    caller.require(Allow(RULE))


def join(found: Neighbours, row: Row, *, hand: Hand, caller: Actor, now: datetime) -> None:
    """Write the dependencies. Raises Denied where one would close a circle.

    A task that has to wait has changed, and its version says so; one that is waited for has not.
    """
    for other in found.blocks:
        _join_one(row, other, caller)
    for other in found.blocked_by:
        _join_one(other, row, caller)
    for other in found.blocks:
        _bump(other, caller, hand, row, now)


def _join_one(blocker: Row, blocked: Row, caller: Actor) -> None:
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "blocker": blocker.id,
        "blocked": blocked.id,
    }
    with connection.cursor() as cursor:
        try:
            cursor.execute(
                "INSERT INTO tasks_dependency (organisation_id, blocker_id, blocked_id) "
                "VALUES (%(organisation)s, %(blocker)s, %(blocked)s) "
                "ON CONFLICT (blocker_id, blocked_id) DO NOTHING",
                values,
            )
        except IntegrityError as problem:
            if "circle" not in str(problem):
                raise
            raise _circle(blocked, blocker) from problem
        if not cursor.rowcount:
            return
        # Counted on what is there now: this very transaction may have finished one of the two.
        cursor.execute(
            "UPDATE tasks_task SET open_blockers = open_blockers + 1 WHERE id = %(blocked)s "
            "AND EXISTS (SELECT 1 FROM tasks_task WHERE id = %(blocker)s "
            "AND status IN ('pending', 'in_progress'))",
            values,
        )
        cursor.execute(
            "UPDATE tasks_task SET dependents = dependents + 1 WHERE id = %(blocker)s "
            "AND EXISTS (SELECT 1 FROM tasks_task WHERE id = %(blocked)s "
            "AND status IN ('pending', 'in_progress'))",
            values,
        )


def _circle(row: Row, blocker: Row | None = None) -> Denied:
    names = f"#{blocker.number} -> #{row.number}" if blocker else f"#{row.number} -> itself"
    problem = f"the dependency {names} would close a circle"
    return refuse(
        Code.INVALID_PARAMS,
        f"{problem}; tasks in a circle could never start.",
        "look at blocks and blockedBy with task_get, and leave this dependency out",
        rule=RULE,
        dependency=problem,
    )


def _bump(other: Row, caller: Actor, hand: Hand, row: Row, now: datetime) -> None:
    """The other end has to wait from now on: its version says so, and so does an event."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tasks_task SET version = version + 1, updated_at = %s WHERE id = %s "
            "RETURNING version",
            [now, other.id],
        )
        version = cursor.fetchone()[0]
    record(
        Action.TASK_JOINED,
        by=caller,
        at=now,
        subject=subject_of(hand.policy, other.number),
        kind="task",
        for_agent_id=other.owner_id,
        details={"version": version, "with": str(row.number)},
    )


LEAVE = """
UPDATE tasks_task SET open_blockers = open_blockers - 1
WHERE id IN (SELECT blocked_id FROM tasks_dependency WHERE blocker_id = %(id)s)
RETURNING number, open_blockers, status
"""
UNCOUNT = """
UPDATE tasks_task SET dependents = dependents - 1
WHERE id IN (SELECT blocker_id FROM tasks_dependency WHERE blocked_id = %(id)s)
"""


def leave(row: Row, status: Status | None, *, hand: Hand, now: datetime) -> None:
    """Set free what waited for a task that has just ended, and tell those who could go on."""
    if row.status not in UNFINISHED:
        return
    with connection.cursor() as cursor:
        cursor.execute(UNCOUNT, {"id": row.id})
        cursor.execute(LEAVE, {"id": row.id})
        freed = [number for number, left, state in cursor.fetchall() if not left and state in FREE]
    if freed:
        announcing.announce_free(_rows(hand, freed), row, status, hand=hand, now=now)


FREE = frozenset({str(Status.PENDING), str(Status.IN_PROGRESS)})


def _rows(hand: Hand, numbers: list[Any]) -> list[Row]:
    values: dict[str, Any] = {
        "organisation": hand.policy.organisation_id,
        "numbers": numbers,
    }
    with connection.cursor() as cursor:
        cursor.execute(MANY + " ORDER BY t.number", values)
        return [as_row(found) for found in cursor.fetchall()]
