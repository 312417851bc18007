"""What an update wants, and what an allowed one does to the row: columns, event, times, lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from core.actions import Action
from core.actors import Actor
from core.decision import Deny
from core.events import Event
from orgchart.policy.compiled import Agent, Policy
from tasks.checking import checked_metadata
from tasks.facts import Change, Facts
from tasks.ownership import keeps_approval
from tasks.parties import Hand
from tasks.rows import Row, merged, subject_of
from tasks.vocabulary import UNFINISHED, Status
from tasks.writing import Write

ENDS = frozenset({Status.COMPLETED, Status.DELETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """An update as it was asked for; None is not asked. `owner` '' releases (seed 001 §5.1)."""

    status: Status | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    metadata: Mapping[str, Any] | None = None
    add_blocks: tuple[str, ...] = ()
    add_blocked_by: tuple[str, ...] = ()
    rank: int | None = None
    required_role: str | None = None
    task_type: str | None = None
    expected_version: int | None = None
    force: bool = False
    assigns: bool = False
    curates: bool = False

    @property
    def touches_others(self) -> bool:
        """Whether the update joins this task to others."""
        return bool(self.add_blocks or self.add_blocked_by)

    @property
    def content(self) -> dict[str, Any]:
        """The columns of the task's content that it names."""
        named = {
            "subject": self.subject,
            "description": self.description,
            "active_form": self.active_form,
            "rank": self.rank,
            "required_role": self.required_role,
            "task_type": self.task_type,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def reworks(self) -> bool:
        """Whether it names what an approval is given for: subject, description or metadata."""
        return (self.subject, self.description, self.metadata) != (None, None, None)

    @property
    def renews(self) -> bool:
        """Whether it names nothing, and so only renews the owner's claim."""
        named = self.content or self.metadata is not None or self.touches_others
        return not named and self.status is None and self.owner is None

    @property
    def edits(self) -> bool:
        """Whether it is more than a change of owner and status; one that renews a claim is."""
        return bool(self.content or self.metadata is not None or self.touches_others or self.renews)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An allowed update, ready to be written."""

    action: Action
    write: Write
    status: Status | None
    new_owner: Agent | None
    sets_owner: bool
    ends_with_neighbours: bool
    details: Mapping[str, Any]
    warnings: tuple[Deny, ...] = field(default=())

    def seen_by(self, hand: Hand, row: Row) -> int | None:
        """The agent whose task somebody else changed or gave it."""
        mine = hand.agent.id if hand.agent else None
        for other in (self.new_owner.id if self.new_owner else None, row.owner_id):
            if other is not None and other != mine:
                return other
        return None

    def event(self, caller: Actor, policy: Policy, row: Row, now: datetime) -> Event:
        """The one event of this change."""
        agent: Agent | None = getattr(caller, "agent", None)
        return Event.by(
            caller,
            self.action,
            at=now,
            subject=subject_of(policy, row.number),
            kind="task",
            for_agent_id=self.seen_by(Hand(policy, agent), row),
            details=self.details,
        )

    def applied(self, row: Row, now: datetime) -> Row:
        """The row as it is once written."""
        changes = dict(self.write.sets)
        if self.sets_owner:
            changes["owner"] = self.new_owner.handle if self.new_owner else None
        return replace(row, version=row.version + 1, updated_at=now, **changes)


def plan_of(
    hand: Hand,
    row: Row,
    update: Update,
    change: Change,
    warnings: tuple[Deny, ...],
    now: datetime,
) -> Plan:
    """Lay out what an allowed update writes."""
    facts = row.facts(hand.policy)
    sets: dict[str, Any] = dict(update.content)
    if update.metadata is not None:
        sets["metadata"] = merged(row.metadata, update.metadata)
        checked_metadata(sets["metadata"])
    takes = change.sets_owner and change.new_owner != facts.owner
    if takes:
        sets |= _ownership(row, change.new_owner, now)
    owner_id = sets.get("owner_id", row.owner_id)
    sets |= _progress(hand, row, change.status, owner_id, now)
    sets |= _lease(hand, row, sets, takes=takes, now=now)
    worker = hand.agent.id if hand.agent and _works(facts, change) else None
    did = sets.get("workers", row.workers)
    if worker is not None and worker not in did:
        sets["workers"] = [*did, worker]
    if row.approved_at is not None and not keeps_approval(hand, facts, change):
        sets |= {"approved_by": "", "approved_at": None}
    ends = change.status in ENDS and bool(row.blocks or row.blocked_by)
    return Plan(
        action=_action(change, takes=takes),
        write=Write(
            sets=sets,
            experience_of=sets.get("completed_by_id"),
            new_owner_id=change.new_owner.id if takes and change.new_owner else None,
            dependents=row.dependents if change.status in ENDS else None,
        ),
        status=change.status,
        new_owner=change.new_owner if takes else None,
        sets_owner=takes,
        ends_with_neighbours=ends,
        details=_details(row, update, change, takes=takes),
        warnings=warnings,
    )


def _works(task: Facts, change: Change) -> bool:
    """Whether the update is work on the task, owned or not: nobody approves their own."""
    moves = change.status in (Status.IN_PROGRESS, Status.COMPLETED)
    return moves or (change.reworks and task.status is not Status.PENDING)


def _ownership(row: Row, new: Agent | None, now: datetime) -> dict[str, Any]:
    if new is None:
        return {"owner_id": None, "owner_role": ""}
    return {
        "owner_id": new.id,
        "owner_role": new.role,
        "cross_role": row.required_role not in ("", new.role),
        "claimed_at": now,
        "workers": row.workers if new.id in row.workers else [*row.workers, new.id],
    }


def _progress(
    hand: Hand, row: Row, status: Status | None, owner_id: int | None, now: datetime
) -> dict[str, Any]:
    match status:
        case None:
            return {}
        case Status.IN_PROGRESS:
            return {"status": status.value, "started_at": now}
        case Status.COMPLETED:
            worker = owner_id or row.owner_id or (hand.agent.id if hand.agent else None)
            return {"status": status.value, "completed_at": now, "completed_by_id": worker}
        case _:
            return {"status": status.value}


def _lease(
    hand: Hand, row: Row, sets: Mapping[str, Any], *, takes: bool, now: datetime
) -> dict[str, Any]:
    """A claim lasts for the organisation's lease; each update by the owner renews it."""
    owner_id = sets.get("owner_id", row.owner_id)
    if owner_id is None or sets.get("status", row.status) not in UNFINISHED:
        return {"lease_due_at": None}  # the sweep may date a claim after it was read
    if not takes and (hand.agent is None or hand.agent.id != owner_id):
        return {}
    lasts = hand.policy.settings["task_lease"]
    return {"lease_due_at": now + timedelta(seconds=lasts) if lasts else None}


def _action(change: Change, *, takes: bool) -> Action:
    match change.status:
        case Status.IN_PROGRESS:
            return Action.TASK_STARTED
        case Status.COMPLETED:
            return Action.TASK_COMPLETED
        case Status.DELETED:
            return Action.TASK_DELETED
        case _:
            pass
    if takes:
        return Action.TASK_CLAIMED if change.new_owner else Action.TASK_RELEASED
    return Action.TASK_UPDATED


def _details(row: Row, update: Update, change: Change, *, takes: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"version": row.version + 1}
    if change.status is not None:
        found["status"] = [row.status, change.status.value]
    if takes:
        found["owner"] = [row.owner or "", change.new_owner.handle if change.new_owner else ""]
        found["requiredRole"] = row.required_role
    fields = sorted([*update.content, *(["metadata"] if update.metadata is not None else [])])
    if fields:
        found["fields"] = fields
    if update.add_blocks:
        found["addBlocks"] = list(update.add_blocks)
    if update.add_blocked_by:
        found["addBlockedBy"] = list(update.add_blocked_by)
    if change.force:
        found["forceAssign"] = True
    return found


def warned(broken: Deny, caller: Actor, subject: str, now: datetime) -> Event:
    """What `enforce` would have refused and `warn` let pass (seed 001 §8.2)."""
    return Event.by(
        caller,
        Action.TASK_WARNED,
        at=now,
        subject=subject,
        code=broken.code.value,
        reason=broken.message,
        kind="task",
        for_agent_id=getattr(getattr(caller, "agent", None), "id", None),
        details={"rule": broken.rule, "enforcement": "warn"},
    )
