"""Budget requests: a superior answers one with a contract of kind budget."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from contracts.models import Contract
from contracts.results import RequestedBudget
from contracts.vocabulary import ContractState
from core.actions import Action
from core.database import needs_transaction
from core.decision import Code, refuse
from ledger.services import record
from mailroom.delivery import send_as
from mailroom.models import Mail
from mailroom.references import require_own
from mailroom.rules import can_escalate_to, can_mail
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import Party
from toolbox.caller import Caller

REQUEST = "approval_request"


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
    rule = caller.require(can_mail(caller.agent, superior, REQUEST, caller.policy)).rule
    require_own(caller, contract_ref=contract_ref)
    with transaction.atomic():
        mail_id = send_as(
            caller=caller,
            recipient=superior,
            mail_type=REQUEST,
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


@needs_transaction
def lock_request(mail_id: str, issuer: Party, assignee: Agent) -> None:
    """Lock the request that a budget is about to answer (Spec: contracts 15).

    Raises Denied: NOT_FOUND unless the assignee sent it to the issuer, INVALID_TRANSITION where a
    contract that is not cancelled answers it already.
    """
    requests = Mail.objects.select_for_update(no_key=True).filter(
        sender_id=assignee.id, recipient_id=issuer.id, mail_type=REQUEST
    )
    if not requests.filter(id=mail_id).exists():
        raise refuse(
            Code.NOT_FOUND,
            f"request: {assignee.handle} sent you no such approval_request",
            f"name the mail_id of an approval_request of {assignee.handle} to you (read_inbox with "
            "this type lists yours), or leave request out",
            rule="a budget answers a request of its assignee (spec: contracts 15)",
        )
    answer = Contract.objects.filter(request_id=mail_id).exclude(state=ContractState.CANCELLED)
    found = answer.values_list("id", flat=True).first()
    if found is not None:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"request: {found} answers it already",
            f"cancel {found} with close_contract first, or leave request out",
            rule="a request is answered by one budget (spec: contracts 15)",
        )
