"""Contracts that authorise: deployments, changes of the organisation, budgets."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection, transaction

from contracts import rules, store, terms
from contracts.issuing import Draft, issue_contract
from contracts.models import Contract
from contracts.vocabulary import ContractKind, State
from core.actions import Action
from core.decision import Allow, Code, Denied, Deny, refuse
from ledger.services import record
from mailroom.delivery import send_as
from mailroom.ownership import require_own
from mailroom.rules import can_escalate_to, can_mail
from toolbox.caller import Caller

USABLE = (State.PENDING, State.IN_PROGRESS)


def approve_deployment(
    *,
    caller: Caller,
    to: str,
    environment: str,
    artifact: str,
    expires_at: datetime,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Approve one deployment of one artefact to one environment, until a time (seed 000 §1.8).

    Raises Denied as issuing a contract does; INVALID_PARAMS for an odd name or a time gone by.
    """
    caller.require(terms.can_approve(environment, artifact, expires_at, now))
    draft = Draft(
        to=to,
        title=f"Deployment of {artifact[:80]} to {environment}",
        body=reason,
        kind=ContractKind.DEPLOYMENT_APPROVAL,
        environment=environment,
        artifact=artifact,
        expires_at=expires_at,
    )
    return issue_contract(caller=caller, draft=draft, tool=terms.APPROVE, now=now)


def use_approval(*, caller: Caller, environment: str, artifact: str, now: datetime) -> str:
    """Use up the approval that covers this deployment and return its contract's id.

    In the transaction of the deployment. Of two deployments at once one gets it. Raises Denied
    APPROVAL_REQUIRED saying what is wrong with the nearest approval there is.
    """
    with transaction.atomic():
        held = list(
            Contract.objects.select_for_update(no_key=True)
            .filter(
                organisation_id=caller.organisation_id,
                assignee_id=caller.agent.id,
                kind=ContractKind.DEPLOYMENT_APPROVAL,
                environment=environment,
                artifact=artifact,
                state__in=USABLE,
                used_at=None,
            )
            .order_by("expires_at", "id")
        )
        for row in held:
            contract = store.facts_of(row, caller.policy)
            allowed = rules.can_use_approval(
                contract, caller.agent, environment=environment, artifact=artifact, now=now
            )
            if isinstance(allowed, Allow):
                caller.require(allowed)
                row.used_at = now
                store.advance(
                    row,
                    contract,
                    Action.APPROVAL_USED,
                    caller=caller,
                    now=now,
                    tell=contract.issuer,
                )
                return row.id
        raise Denied(_why_not(caller, environment, artifact, now))


def _why_not(caller: Caller, environment: str, artifact: str, now: datetime) -> Deny:
    mine = Contract.objects.filter(
        assignee_id=caller.agent.id, kind=ContractKind.DEPLOYMENT_APPROVAL
    ).order_by("-id")
    row = mine.filter(environment=environment, artifact=artifact).first() or mine.first()
    if row is not None:
        found = rules.can_use_approval(
            store.facts_of(row, caller.policy),
            caller.agent,
            environment=environment,
            artifact=artifact,
            now=now,
        )
        if isinstance(found, Deny):
            return found
    return rules.needs_approval(caller.agent, environment, artifact, "there is none")


def active_authorisation(
    *, organisation_id: int, assignee_id: int, kind: ContractKind
) -> Contract | None:
    """The agent's newest authorisation of this kind in progress, if any.

    Inside a transaction it is held: it cannot be closed before that transaction ends.
    """
    rows = Contract.objects.filter(
        organisation_id=organisation_id,
        assignee_id=assignee_id,
        kind=kind,
        state=State.IN_PROGRESS,
    ).order_by("-id")
    if connection.in_atomic_block:
        rows = rows.select_for_update(no_key=True)
    return rows.first()


def require_authorisation(*, caller: Caller, kind: ContractKind) -> Contract:
    """The caller's authorisation of this kind in progress, held until the transaction ends.

    Raises Denied AUTHORISATION_REQUIRED (seed 000 §1.4).
    """
    found = active_authorisation(
        organisation_id=caller.organisation_id, assignee_id=caller.agent.id, kind=kind
    )
    if found is None:
        raise refuse(
            Code.AUTHORISATION_REQUIRED,
            f"{caller.tool or 'this'} needs a contract of kind {kind} in progress",
            f"accept one (list_contracts shows yours), or ask {caller.agent.superior} for one",
            rule=f"{kind} authorises it (seed 000 §1.4)",
        )
    return found


def request_budget(
    *,
    caller: Caller,
    amount: Decimal,
    currency: str,
    purpose: str,
    contract_ref: str | None,
    now: datetime,
) -> dict[str, Any]:
    """Ask the direct superior for money; it answers with a contract of kind budget.

    Raises Denied LEVEL_DENIED for who has no superior agent, NOT_FOUND for a contract that the
    caller is no party of, and what the mail rules refuse.
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
