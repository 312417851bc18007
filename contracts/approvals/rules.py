"""Deployment approvals: what one may name, and which deployment it covers; pure."""

from __future__ import annotations

import re
from datetime import datetime

from contracts.rules import ContractFacts
from contracts.vocabulary import ContractKind, ContractState
from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent

ENVIRONMENT = re.compile(r"[a-z][a-z0-9-]{0,62}\Z")
ARTIFACT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}\Z")


def can_approve(environment: str, artifact: str, expires_at: datetime, now: datetime) -> Decision:
    """Decide whether an approval may name these: one spelling each, and a time in the future."""
    wrong = {}
    if not ENVIRONMENT.match(environment):
        wrong["environment"] = "lower-case letters, digits and '-', beginning with a letter"
    if not ARTIFACT.match(artifact):
        wrong["artifact"] = "a digest such as sha256:…, without spaces"
    if expires_at <= now:
        wrong["expires_at"] = "a time in the future"
    if not wrong:
        return Allow("environment and artefact")
    field, form = next(iter(wrong.items()))
    return Deny(
        Code.INVALID_PARAMS,
        f"{field}: must be {form}",
        "name environment and digest exactly, and until when",
        "an approval names one environment and one artefact",
        wrong,
    )


def can_use_approval(
    contract: ContractFacts, who: Agent, *, environment: str, artifact: str, now: datetime
) -> Decision:
    """Decide whether an approval covers this deployment: its assignee's, for exactly this
    environment and artefact, not expired, not used, not closed (Spec: contracts 18).
    """
    problem = ""
    if contract.kind is not ContractKind.DEPLOYMENT_APPROVAL or contract.assignee.id != who.id:
        problem = "is not a deployment approval of yours"
    elif contract.environment != environment or contract.artifact != artifact:
        problem = "is for another environment or artefact"
    elif contract.state not in (ContractState.PENDING, ContractState.IN_PROGRESS):
        problem = f"is {contract.state}"
    elif contract.used_at is not None:
        problem = "was used"
    elif contract.expires_at is None or contract.expires_at <= now:
        problem = "has expired"
    if not problem:
        return Allow("deployment approval (spec: contracts 16)")
    return approval_required(who, environment, artifact, f"{contract.id} {problem}")


def approval_required(who: Agent, environment: str, artifact: str, problem: str) -> Deny:
    """The refusal of a deployment that no approval covers."""
    return deny(
        Code.APPROVAL_REQUIRED,
        f"deploying {artifact[:80]} to {environment[:63]} needs a deployment approval: {problem}",
        f"ask {who.superior} to approve exactly this environment and artefact",
        rule="no deployment without approval (spec: contracts 16)",
    )
