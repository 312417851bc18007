"""Approvals that expired unused: each is cancelled once, and both parties are notified."""

from __future__ import annotations

from datetime import datetime

from contracts.deadlines import OPEN_WORK
from contracts.models import Contract
from contracts.store import contract_facts, save_contract, writers_of_terms
from contracts.vocabulary import ContractKind
from core.actions import Action
from core.actors import System
from mailroom.delivery import send_system_mail
from orgchart.policy.compiled import Agent
from orgchart.policy_cache import current_policy
from toolbox.quoting import one_line
from toolbox.scheduler import sweep


def expire_approvals(now: datetime) -> int:
    """Cancel every approval that can no longer be used; returns how many (Spec: contracts 19)."""
    due = Contract.objects.filter(
        kind=ContractKind.DEPLOYMENT_APPROVAL,
        state__in=OPEN_WORK,
        used_at=None,
        expires_at__lte=now,
    )
    return sweep(due.order_by("expires_at"), lambda row: _expire(row, now), of="organisation")


def _expire(row: Contract, now: datetime) -> None:
    was = contract_facts(row, current_policy(row.organisation_id))
    system = System(name="approvals", organisation_id=row.organisation_id)
    reason = "it expired before it was used"
    row.close_cancelled(at=now, by=system.actor, reason=reason)
    save_contract(
        row, was, Action.APPROVAL_EXPIRED, caller=system, now=now, reader=was.issuer, reason=reason
    )
    for party in (was.issuer, was.assignee):
        if isinstance(party, Agent) and party.active:
            send_system_mail(
                organisation_id=row.organisation_id,
                recipient=party,
                subject=f"{row.id} has expired unused",
                body=(
                    f"{one_line(row.title)} was approved until {row.expires_at}. "
                    "A deployment needs another approval."
                ),
                quotes=writers_of_terms(row.id),
                now=now,
                contract_ref=row.id,
            )
