"""Deadlines of contracts: the assignee is reminded before, the issuer told after, each once."""

from __future__ import annotations

from datetime import datetime, timedelta

from contracts.models import Contract, Deadline
from contracts.vocabulary import State
from core.actions import Action
from core.actors import System
from ledger.services import record
from mailroom.delivery import send_system_mail
from orgchart.compiling import current_policy
from toolbox.scheduler import sweep

REMINDED_BEFORE = timedelta(hours=24)
OPEN_WORK = frozenset({State.PENDING, State.IN_PROGRESS})
"""States in which a deadline still asks something of the assignee."""


def set_deadlines(contract: Contract, *, now: datetime) -> None:
    """Write down when somebody is to be told; in the transaction that issues the contract.

    A short contract is reminded of half-way.
    """
    if contract.deadline is None:
        return
    early = max(contract.deadline - REMINDED_BEFORE, now + (contract.deadline - now) / 2)
    Deadline.objects.bulk_create(
        [
            Deadline(contract=contract, stage="remind", due_at=early),
            Deadline(contract=contract, stage="overdue", due_at=contract.deadline),
        ]
    )


def tell_due(*, now: datetime) -> int:
    """Tell whoever is due to be told; returns how many rows were handled."""
    due = Deadline.objects.filter(done_at=None, due_at__lte=now).order_by("due_at")
    return sweep(due, lambda row: _told(row, now))


def _told(row: Deadline, now: datetime) -> None:
    Deadline.objects.filter(id=row.id).update(done_at=now)
    contract = Contract.objects.get(id=row.contract_id)
    if contract.state not in OPEN_WORK:
        return
    if row.stage == "remind" and contract.deadline is not None and contract.deadline <= now:
        return  # nobody looked in between: all that is left to say is that it is overdue
    policy = current_policy(contract.organisation_id)
    recipient_id = contract.assignee_id if row.stage == "remind" else contract.issuer_id
    recipient = policy.by_id.get(recipient_id or 0)
    system = System(name="deadlines", organisation_id=contract.organisation_id)
    record(
        Action(f"contract.{'reminded' if row.stage == 'remind' else 'overdue'}"),
        by=system,
        at=now,
        subject=f"contract:{contract.id}",
        details={"due_at": row.due_at.isoformat(), "state": str(contract.state)},
    )
    if recipient is None or not recipient.active:
        return
    send_system_mail(
        organisation_id=contract.organisation_id,
        recipient=recipient,
        subject=_subject(row, contract),
        body=f"{contract.title} is {contract.state}; its deadline is {contract.deadline}.",
        now=now,
        contract_ref=contract.id,
    )


def _subject(row: Deadline, contract: Contract) -> str:
    if row.stage == "remind":
        return f"{contract.id} is due soon"
    return f"{contract.id} of {contract.assignee.handle} is overdue"
