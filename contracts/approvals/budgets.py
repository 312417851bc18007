"""Budget requests: a superior answers one with a contract of kind budget."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from contracts.results import RequestedBudget
from core.actions import Action
from ledger.services import record
from mailroom.delivery import send_as
from mailroom.references import require_own
from mailroom.rules import can_escalate_to, can_mail
from toolbox.caller import Caller


def request_budget(
    *,
    caller: Caller,
    amount: Decimal,
    currency: str,
    purpose: str,
    contract_ref: str | None,
    now: datetime,
) -> RequestedBudget:
    """Ask the direct superior for money; it answers with a contract of kind budget.

    Raises Denied LEVEL_DENIED without a superior agent, NOT_FOUND for a contract of other parties,
    and what the mail rules refuse.
    """
    caller.require(can_escalate_to(caller.agent, caller.policy))
    superior = caller.policy.agents[caller.agent.superior]
    rule = caller.require(can_mail(caller.agent, superior, "approval_request", caller.policy)).rule
    require_own(caller, contract_ref=contract_ref)
    with transaction.atomic():
        mail_id = send_as(
            caller=caller,
            recipient=superior,
            mail_type="approval_request",
            subject=f"Budget request: {amount} {currency}",
            body=purpose,
            contract_ref=contract_ref or "",
            now=now,
            rule=rule,
        )
        record(
            Action.BUDGET_REQUESTED,
            by=caller,
            at=now,
            subject=f"mail:{mail_id}",
            for_agent_id=superior.id,
            details={"amount": str(amount), "currency": currency},
        )
    return {"mail_id": mail_id, "to": superior.handle}
