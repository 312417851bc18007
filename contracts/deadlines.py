"""Deadlines of contracts: remind the assignee before, notify the issuer after, each once."""

from __future__ import annotations

from datetime import datetime, timedelta

from contracts.models import Contract, Deadline
from contracts.store import writers_of_terms
from contracts.vocabulary import ContractState, DeadlineStage
from core.actions import Action
from core.actors import System
from core.database import needs_transaction
from ledger.services import record
from mailroom.delivery import send_system_mail
from orgchart.policy_cache import current_policy
from toolbox.quoting import one_line
from toolbox.scheduler import sweep

REMINDED_BEFORE = timedelta(hours=24)
OPEN_WORK = frozenset({ContractState.PENDING, ContractState.IN_PROGRESS})
"""States in which a deadline still asks something of the assignee."""


@needs_transaction
def insert_deadlines(contract: Contract, *, now: datetime) -> None:
    """Insert the moments at which the parties are notified of a contract's deadline.

    The reminder of a short contract is half-way.
    """
    if contract.deadline is None:
        return
    early = max(contract.deadline - REMINDED_BEFORE, now + (contract.deadline - now) / 2)
    due = {DeadlineStage.REMIND: early, DeadlineStage.OVERDUE: contract.deadline}
    Deadline.objects.bulk_create(
        Deadline(
            organisation_id=contract.organisation_id, contract=contract, stage=stage, due_at=due_at
        )
        for stage, due_at in due.items()
    )


@needs_transaction
def reopen_deadlines(contract: Contract) -> None:
    """Let what fell due while a contract was in review be told, as it is sent back now."""
    Deadline.objects.filter(contract_id=contract.id, done_at__gt=contract.submitted_at).update(
        done_at=None
    )


def notify_due(now: datetime) -> int:
    """Notify the parties of every deadline that is due; returns how many rows were handled."""
    due = Deadline.objects.filter(done_at=None, due_at__lte=now).order_by("due_at")
    return sweep(due, lambda row: _notify(row, now), of="organisation")


def _notify(row: Deadline, now: datetime) -> None:
    Deadline.objects.filter(id=row.id).update(done_at=now)
    contract = Contract.objects.get(id=row.contract_id)
    if contract.state not in OPEN_WORK:
        return
    is_reminder = row.stage == DeadlineStage.REMIND
    if is_reminder and contract.deadline is not None and contract.deadline <= now:
        return  # the scheduler did not run in between: only the overdue notice is sent
    policy = current_policy(contract.organisation_id)
    recipient_id = contract.assignee_id if is_reminder else contract.issuer_id
    recipient = policy.by_id.get(recipient_id or 0)
    system = System(name="deadlines", organisation_id=contract.organisation_id)
    record(
        Action.CONTRACT_REMINDED if is_reminder else Action.CONTRACT_OVERDUE,
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
        subject=f"{contract.id} is due soon"
        if is_reminder
        else f"{contract.id} of {contract.assignee.handle} is overdue",
        body=f"{one_line(contract.title)} is {contract.state}; "
        f"its deadline is {contract.deadline}.",
        quotes=writers_of_terms(contract.id),
        now=now,
        contract_ref=contract.id,
    )
