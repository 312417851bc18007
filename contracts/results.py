"""What the tools of contracts answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from contracts.vocabulary import (
    ContractKind,
    ContractState,
    OrgAct,
    ReportKind,
    VerdictFinding,
)
from core.params import wire_result
from documents.models import ReportType
from mailroom.models import Priority
from orgchart.policy.vocabulary import ToolMode


@wire_result
class ContractVersion(TypedDict):
    """Where a contract is after a change of its state."""

    state: ContractState
    version: int


@wire_result
class IssuedContract(TypedDict):
    """A contract that was issued, and the mail that delivered it."""

    contract_id: str
    mail_id: str
    state: ContractState
    version: int


@wire_result
class SubmittedReport(TypedDict):
    """A report that was sent, and where its contract is now."""

    mail_id: str
    report_id: str
    state: ContractState
    version: int


@wire_result
class GivenVerdict(TypedDict):
    """A verdict that was recorded, and the mail that carries it."""

    verdict_id: str
    mail_id: str
    commit: Annotated[str | None, Field(description="the commit it is about, of code work")]
    run_digest: Annotated[
        str | None, Field(description="SHA-256 of the log of your last run on it")
    ]


@wire_result
class RequestedBudget(TypedDict):
    """A budget request that was sent."""

    mail_id: str
    to: Annotated[str, Field(description="the superior that decides")]


ContractChannel = TypedDict("ContractChannel", {"from": str, "to": str, "types": list[str]})
wire_result(ContractChannel)
"""A channel between two agents that is open while the contract is."""


@wire_result
class ContractSummary(TypedDict):
    """A contract without its text."""

    contract_id: str
    kind: ContractKind
    state: ContractState
    version: int
    title: str
    issuer: Annotated[str, Field(description="a handle, or board")]
    assignee: str
    priority: Priority
    deadline: datetime | None
    mode: ToolMode
    workspace_scope: list[str]
    assigned_branch: str | None
    grants: list[ContractChannel]
    supersedes: Annotated[str | None, Field(description="the closed contract it follows")]
    answers: Annotated[str | None, Field(description="the escalation it answers")]
    request: Annotated[str | None, Field(description="the approval_request a budget answers")]
    environment: str | None
    artifact: str | None
    expires_at: datetime | None
    used_at: datetime | None
    amount: Annotated[str | None, Field(description="two decimals, as text")]
    currency: str | None
    mail_id: str
    created_at: datetime
    accepted_at: datetime | None
    submitted_at: datetime | None
    closed_at: datetime | None
    closed_by: str | None
    closed_reason: str | None


@wire_result
class AllowedChange(TypedDict):
    """A change of the organisation that the contract allows, once."""

    act: OrgAct
    subject: Annotated[str, Field(description="the agent's handle; of hire the new one")]
    role: Annotated[str | None, Field(description="the role that it gives, where it is named")]
    reports_to: Annotated[str | None, Field(description="the superior, where it is named")]
    co_managers: list[str]
    skills: list[str]
    group: Annotated[str | None, Field(description="the group, where it is named")]
    leads: Annotated[str | None, Field(description="the group that it comes to lead, likewise")]
    used_at: datetime | None


@wire_result
class ContractReport(TypedDict):
    """A report of the assignee."""

    report_id: str
    kind: ReportKind
    submission: Annotated[int | None, Field(description="which submission a completion is")]
    report_type: ReportType
    title: str
    body: str
    commit: Annotated[str | None, Field(description="where the branch was when it was submitted")]
    created_at: datetime


@wire_result
class ContractVerdict(TypedDict):
    """A verdict of QA on the work."""

    verdict_id: str
    report_id: Annotated[str, Field(description="the submission that it judges")]
    verdict: VerdictFinding
    evidence: Annotated[Any, Field(description="text, or a list of what was run")]
    body: str
    judge: str
    commit: Annotated[str | None, Field(description="the commit that was judged")]
    run_digest: Annotated[str | None, Field(description="SHA-256 of the log of the judge's run")]
    created_at: datetime


@wire_result
class ContractDetail(ContractSummary):
    """A whole contract, with its newest reports and verdicts."""

    body: str
    changes: list[AllowedChange]
    reports: list[ContractReport]
    verdicts: list[ContractVerdict]
    truncated: Annotated[bool, Field(description="true if it has earlier reports or verdicts")]


@wire_result
class ContractPage(TypedDict):
    """A page of contracts, newest first."""

    contracts: list[ContractSummary]
    next_cursor: str | None
