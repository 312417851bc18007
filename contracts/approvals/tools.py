"""What agents can do with approvals and budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from contracts.approvals import budgets, deployments
from contracts.issuing.rules import APPROVE
from contracts.results import IssuedContract, RequestedBudget
from core.params import Amount, Currency, MailBody, Moment, Name, Params, Reason, Reference
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool


class ApproveDeployment(Params):
    """The approval of one deployment (Spec: contracts 17)."""

    to: Name = Field(description="the worker that deploys")
    environment: Name = Field(
        description="lower-case, such as production",
        json_schema_extra={"pattern": "^[a-z][a-z0-9-]{0,62}$"},
    )
    artifact: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(
        description="its digest, such as sha256:…",
        json_schema_extra={"pattern": "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}$"},
    )
    expires_at: Moment = Field(description="ISO 8601; usable once until then")
    reason: Reason


@tool(APPROVE, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def approve_deployment(caller: Caller, params: ApproveDeployment, now: datetime) -> IssuedContract:
    """Approve one deployment of one artefact to one environment, until a time."""
    return deployments.approve_deployment(
        caller=caller,
        to=params.to,
        environment=params.environment,
        artifact=params.artifact,
        expires_at=params.expires_at,
        reason=params.reason,
        now=now,
    )


class RequestBudget(Params):
    """A request for money."""

    amount: Amount
    currency: Currency = "USD"
    purpose: MailBody = Field(min_length=1)
    contract_ref: Reference | None = None


@tool("request_budget", group=ToolGroup.CONTRACT, modes=ANY_MODE)
def request_budget(caller: Caller, params: RequestBudget, now: datetime) -> RequestedBudget:
    """Ask your superior for a budget: a contract of kind budget."""
    return budgets.request_budget(
        caller=caller,
        amount=params.amount,
        currency=params.currency,
        purpose=params.purpose,
        contract_ref=params.contract_ref,
        now=now,
    )
