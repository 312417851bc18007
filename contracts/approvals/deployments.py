"""Deployment approvals: issued for one deployment, used once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from contracts.approvals import rules
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.rules import APPROVE
from contracts.issuing.services import issue_contract
from contracts.models import Contract
from contracts.results import IssuedContract
from contracts.store import contract_facts, save_contract
from contracts.vocabulary import ContractKind, ContractState
from core.actions import Action
from core.decision import Allow, Decision, Denied, Deny
from toolbox.caller import Caller

USABLE = (ContractState.PENDING, ContractState.IN_PROGRESS)


def approve_deployment(
    *,
    caller: Caller,
    to: str,
    environment: str,
    artifact: str,
    expires_at: datetime,
    reason: str,
    now: datetime,
) -> IssuedContract:
    """Approve one deployment of one artefact to one environment, until a time (Spec: contracts 17).

    Raises Denied as issuing a contract does; INVALID_PARAMS for an odd name or a time in the past.
    """
    caller.require(rules.can_approve(environment, artifact, expires_at, now))
    draft = ContractDraft(
        to=to,
        title=f"Deployment of {artifact[:80]} to {environment}",
        body=reason,
        kind=ContractKind.DEPLOYMENT_APPROVAL,
        environment=environment,
        artifact=artifact,
        expires_at=expires_at,
    )
    return issue_contract(caller=caller, draft=draft, tool=APPROVE, now=now)


def use_approval(
    *,
    caller: Caller,
    environment: str,
    artifact: str,
    now: datetime,
    can_deploy_under: Callable[[Contract], Decision] | None = None,
) -> str:
    """Use an approval that covers this deployment and return its contract's id: of those that the
    rules and `can_deploy_under` allow, the one that expires soonest (Spec: contracts 18).

    One of two concurrent deployments gets it. Raises Denied APPROVAL_REQUIRED with the problem of
    the closest approval.
    """
    refused: Deny | None = None
    with transaction.atomic():
        candidates = list(
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
        for row in candidates:
            contract = contract_facts(row, caller.policy)
            allowed = rules.can_use_approval(
                contract, caller.agent, environment=environment, artifact=artifact, now=now
            )
            if isinstance(allowed, Allow) and can_deploy_under is not None:
                allowed = can_deploy_under(row)
                refused = refused or (allowed if isinstance(allowed, Deny) else None)
            if isinstance(allowed, Allow):
                caller.require(allowed)
                row.used_at = now
                save_contract(
                    row,
                    contract,
                    Action.APPROVAL_USED,
                    caller=caller,
                    now=now,
                    reader=contract.issuer,
                )
                return row.id
        raise Denied(refused or _explain_refusal(caller, environment, artifact, now))


def _explain_refusal(caller: Caller, environment: str, artifact: str, now: datetime) -> Deny:
    mine = Contract.objects.filter(
        assignee_id=caller.agent.id, kind=ContractKind.DEPLOYMENT_APPROVAL
    ).order_by("-id")
    row = mine.filter(environment=environment, artifact=artifact).first() or mine.first()
    if row is not None:
        found = rules.can_use_approval(
            contract_facts(row, caller.policy),
            caller.agent,
            environment=environment,
            artifact=artifact,
            now=now,
        )
        if isinstance(found, Deny):
            return found
    return rules.approval_required(caller.agent, environment, artifact, "there is none")
