"""Creating, reading and updating tasks: load, decide, change in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Code, Denied, refuse
from ledger.services import insert_event, record
from orgchart.policy.compiled import Policy
from tasks import graph
from tasks.checking import checked_metadata, checked_role, checked_type, owner_named
from tasks.discussion import comments_of
from tasks.facts import Change
from tasks.hands import enforcement_of, hand_of
from tasks.parties import Hand
from tasks.planning import Plan, Update, plan_of, warned
from tasks.rows import Row, not_found, read_row, subject_of
from tasks.rules import Ruling, can_update
from tasks.vocabulary import Enforcement, Status
from tasks.writing import swap
from toolbox.wake import wake

CREATE = """
WITH counted AS (
    INSERT INTO tasks_counter AS c (organisation_id, last) VALUES (%(organisation)s, 1)
    ON CONFLICT (organisation_id) DO UPDATE SET last = c.last + 1 RETURNING last
)
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, creator_id, created_at, updated_at)
SELECT %(organisation)s, last, %(subject)s, %(description)s, %(active_form)s, 'pending',
    %(metadata)s::jsonb, %(required_role)s, %(task_type)s, %(created_by)s, %(creator)s,
    %(now)s, %(now)s
FROM counted RETURNING number
"""


def create_task(
    *,
    caller: Actor,
    subject: str,
    now: datetime,
    description: str = "",
    active_form: str = "",
    metadata: dict[str, Any] | None = None,
    required_role: str | None = None,
    task_type: str | None = None,
    blocked_by: Sequence[str] = (),
) -> dict[str, Any]:
    """Add a task to the list; its id is the organisation's next number (seed 001 §3).

    Raises Denied: INVALID_PARAMS for a role or type that does not exist, NOT_FOUND for an unknown
    blocker.
    """
    hand = hand_of(caller)
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "subject": subject,
        "description": description,
        "active_form": active_form,
        "metadata": checked_metadata(metadata or {}),
        "required_role": checked_role(hand.policy, required_role),
        "task_type": checked_type(task_type),
        "created_by": caller.actor,
        "creator": hand.agent.id if hand.agent else None,
        "now": now,
    }
    with transaction.atomic():
        if blocked_by:
            graph.lock(caller.organisation_id)
        with connection.cursor() as cursor:
            cursor.execute(CREATE, values)
            number = cursor.fetchone()[0]
        if str(number) in blocked_by:  # it did not exist when it was named
            raise not_found(str(number))
        record(
            Action.TASK_CREATED,
            by=caller,
            at=now,
            subject=subject_of(hand.policy, number),
            kind="task",
            details={
                "requiredRole": required_role,
                "taskType": task_type,
                "blockedBy": list(blocked_by),
            },
        )
        row = read_row(caller.organisation_id, str(number))
        if blocked_by:
            found = graph.neighbours_of(hand, row, (), blocked_by)
            graph.require_all(found, row, hand, caller)
            graph.join(found, row, hand=hand, caller=caller, now=now)
            row = read_row(caller.organisation_id, str(number))
    return row.shown()


def get_task(*, caller: Actor, task_id: str) -> dict[str, Any]:
    """One task of the caller's organisation, with its last comments. Raises Denied NOT_FOUND."""
    row = read_row(caller.organisation_id, task_id)
    comments = comments_of(row.id)
    return row.shown() | ({"comments": comments} if comments else {})


def update_task(*, caller: Actor, task_id: str, update: Update, now: datetime) -> dict[str, Any]:
    """Change a task by the rules of seed 001 §5, in one statement where nobody was faster.

    Without `expected_version` a lost race is decided anew on what is there now, so the update is
    right whoever else writes. Raises Denied with the rule that refused it; nothing is changed then.
    """
    hand = hand_of(caller)
    wide = update.touches_others
    if not wide:
        row = read_row(caller.organisation_id, task_id)
        plan = _decided(caller, hand, row, update, now)
        wide = plan.ends_with_neighbours
        if not wide and not plan.warnings:
            if swap(row, plan.write, plan.event(caller, hand.policy, row, now)):
                wake(plan.seen_by(hand, row))
                return plan.applied(row, now).shown()
            _require_active(plan)
    while True:
        try:
            with transaction.atomic():
                return _update_locked(caller, hand, task_id, update, now, wide=wide)
        except _NeedsGraph:
            wide = True


class _NeedsGraph(Exception):
    """The task has neighbours to tell, whose lock comes before its own."""


def _decided(
    caller: Actor,
    hand: Hand,
    row: Row,
    update: Update,
    now: datetime,
    new_blockers: tuple[str, ...] = (),
) -> Plan:
    """What the update does to the row as it is. Raises Denied."""
    enforcement = enforcement_of(hand.policy)
    change = _change(hand.policy, row, update, new_blockers)
    ruling: Ruling = can_update(hand, row.facts(hand.policy), change, enforcement)
    caller.require(ruling.decision)
    return plan_of(hand, row, update, change, ruling.warnings, now)


def _change(policy: Policy, row: Row, update: Update, new_blockers: tuple[str, ...]) -> Change:
    expected = update.expected_version
    stale = expected not in (None, row.version) and enforcement_of(policy) is Enforcement.ENFORCE
    new_owner = None
    if update.owner is not None and not stale:  # a stale version is answered before all else
        new_owner = owner_named(policy, update.owner)
    return Change(
        status=update.status,
        sets_owner=update.owner is not None,
        new_owner=new_owner,
        edits=update.edits,
        reworks=update.reworks,
        renews=update.renews,
        expected_version=expected,
        force=update.force,
        assigns=update.assigns,
        curates=update.curates,
        new_blockers=new_blockers,
    )


def _update_locked(
    caller: Actor, hand: Hand, task_id: str, update: Update, now: datetime, *, wide: bool
) -> dict[str, Any]:
    if wide:
        graph.lock(caller.organisation_id)
    row = read_row(caller.organisation_id, task_id, lock=True)
    found = graph.neighbours_of(hand, row, update.add_blocks, update.add_blocked_by)
    plan = _decided(caller, hand, row, update, now, found.new_open_blockers)
    if plan.ends_with_neighbours and not wide:
        raise _NeedsGraph
    if not swap(row, plan.write, plan.event(caller, hand.policy, row, now)):
        _require_active(plan)
        raise RuntimeError(f"task {task_id} changed under its lock")
    for warning in plan.warnings:
        insert_event(warned(warning, caller, subject_of(hand.policy, row.number), now))
    if plan.ends_with_neighbours:
        graph.leave(row, plan.status, hand=hand, now=now)
    if update.touches_others:
        graph.require_all(found, row, hand, caller)
        graph.join(found, row, hand=hand, caller=caller, now=now)
    wake(plan.seen_by(hand, row))
    if update.touches_others:
        return read_row(caller.organisation_id, task_id).shown()
    return plan.applied(row, now).shown()


def _require_active(plan: Plan) -> None:
    """A new owner that was deactivated since the policy was read is no owner."""
    if plan.write.new_owner_id is None:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT active FROM orgchart_agent WHERE id = %s", [plan.write.new_owner_id])
        found = cursor.fetchone()
    if found is None or not found[0]:
        raise inactive_owner()


def inactive_owner() -> Denied:
    """The refusal of an owner that has been deactivated."""
    return refuse(
        Code.RECIPIENT_INACTIVE,
        "this agent is deactivated and takes no tasks",
        "name an active agent as owner",
        rule="owners are active",
    )


def delete_task(*, caller: Actor, task_id: str, expected_version: int | None, now: datetime) -> Any:
    """Shorthand of an update to `deleted`, for people and the backlog."""
    update = Update(status=Status.DELETED, expected_version=expected_version)
    return update_task(caller=caller, task_id=task_id, update=update, now=now)
