"""Approvals whose time ran out unused: each is called off once, and both sides are told."""

from __future__ import annotations

from datetime import datetime

from contracts import store
from contracts.deadlines import OPEN_WORK
from contracts.models import Contract
from contracts.vocabulary import ContractKind
from core.actions import Action
from core.actors import System
from mailroom.delivery import send_system_mail
from orgchart.compiling import current_policy
from toolbox.scheduler import sweep


def expire_approvals(*, now: datetime) -> int:
    """Call off every approval that can no longer be used; returns how many (seed 000 §1.8)."""
    due = Contract.objects.filter(
        kind=ContractKind.DEPLOYMENT_APPROVAL,
        state__in=OPEN_WORK,
        used_at=None,
        expires_at__lte=now,
    )
    return sweep(due.order_by("expires_at"), lambda row: _expire(row, now))


def _expire(row: Contract, now: datetime) -> None:
    was = store.facts_of(row, current_policy(row.organisation_id))
    system = System(name="approvals", organisation_id=row.organisation_id)
    reason = "its time ran out before it was used"
    row.close_cancelled(at=now, by=system.actor, reason=reason)
    store.advance(
        row, was, Action.APPROVAL_EXPIRED, caller=system, now=now, tell=was.issuer, reason=reason
    )
    for party in (was.issuer, was.assignee):
        if party is not None and party.active:
            send_system_mail(
                organisation_id=row.organisation_id,
                recipient=party,
                subject=f"{row.id} has expired unused",
                body=(
                    f"{row.title} was approved until {row.expires_at} and is no more. "
                    "A deployment needs another approval."
                ),
                now=now,
                contract_ref=row.id,
            )
