"""What agents can do with contracts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from contracts import approvals, closing, issuing, judging, reading, services, terms
from contracts.terms import ChannelWish
from contracts.vocabulary import ContractKind, Finding, Outcome, Part, ReportKind, State
from core.paging import DEFAULT_LIMIT, MAX_LIMIT
from core.params import (
    Amount,
    Currency,
    Cursor,
    MailBody,
    Moment,
    Name,
    Params,
    PriorityName,
    Reason,
    Reference,
    RowId,
    Title,
    Version,
)
from documents.models import ReportType
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup, ToolMode
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

EXPECTED = Field(None, description="the version you saw; a change made since then refuses yours")


class Grant(Params):
    """A channel that a contract opens between two agents while it is open."""

    sender: Name = Field(alias="from", description="who may write")
    recipient: Name = Field(alias="to", description="to whom")
    types: list[Name] | None = Field(
        None, max_length=20, description="mail types; left out: all that the channel can carry"
    )


class IssueContract(Params):
    """A contract for one of one's own (seed 000 §4.3)."""

    to: Name = Field(description="handle, address or alias of the assignee")
    title: Title
    body: MailBody
    priority: PriorityName = "medium"
    deadline: Moment | None = Field(None, description="ISO 8601")
    kind: Literal["work", "org_change", "deployment_approval", "budget"] = "work"
    mode: Literal["chat_safe", "coding"] = Field(
        "chat_safe", description="what the assignee's session may do while it works on this"
    )
    workspace_scope: list[Annotated[str, StringConstraints(max_length=1024)]] = Field(
        default_factory=list,
        max_length=50,
        description="folders of the work; with these, the work needs a PASS of QA",
    )
    assigned_branch: Annotated[str, StringConstraints(max_length=200)] | None = None
    grants: list[Grant] = Field(default_factory=list, max_length=20)
    supersedes: Reference | None = Field(
        None, description="a closed contract that this one follows"
    )
    answers: RowId | None = Field(
        None, description="escalation_id of an escalation to you that this contract answers"
    )
    amount: Amount | None = Field(None, description="for kind budget")
    currency: Currency = "USD"

    def draft(self) -> issuing.Draft:
        """The same, as services take it."""
        return issuing.Draft(
            to=self.to,
            title=self.title,
            body=self.body,
            kind=ContractKind(self.kind),
            priority=self.priority,
            deadline=self.deadline,
            mode=ToolMode(self.mode),
            workspace_scope=self.workspace_scope,
            assigned_branch=self.assigned_branch or "",
            grants=[
                ChannelWish(g.sender, g.recipient, None if g.types is None else frozenset(g.types))
                for g in self.grants
            ],
            supersedes=self.supersedes,
            answers=int(self.answers) if self.answers else None,
            amount=self.amount,
            currency=self.currency if self.amount is not None else "",
        )


@tool(terms.GENERATE, params=IssueContract, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def generate_contract(caller: Caller, params: IssueContract, now: datetime) -> dict[str, Any]:
    """Issue a contract to a manager: work, an org_change authorisation, or a budget."""
    return issuing.issue_contract(caller=caller, draft=params.draft(), tool=terms.GENERATE, now=now)


@tool(terms.CREATE, params=IssueContract, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def create_contract(caller: Caller, params: IssueContract, now: datetime) -> dict[str, Any]:
    """Issue a contract of work to one of your own workers."""
    return issuing.issue_contract(caller=caller, draft=params.draft(), tool=terms.CREATE, now=now)


class ReadContract(Params):
    """One contract."""

    contract_id: Reference


@tool(
    "read_contract",
    params=ReadContract,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    read_only=True,
)
def read_contract(caller: Caller, params: ReadContract, now: datetime) -> dict[str, Any]:
    """Read one contract whole, with its reports and verdicts."""
    return reading.read_contract(caller=caller, contract_id=params.contract_id)


class ListContracts(Params):
    """A page of contracts."""

    state: Literal["pending", "in_progress", "review", "passed", "failed", "cancelled"] | None = (
        None
    )
    role: Literal["issued", "assigned"] | None = Field(
        None, description="those you issued, or those you work on; left out: both"
    )
    cursor: Cursor | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


@tool(
    "list_contracts",
    params=ListContracts,
    source=Source.BUILTIN,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    read_only=True,
)
def list_contracts(caller: Caller, params: ListContracts, now: datetime) -> dict[str, Any]:
    """List the contracts that you issued and those assigned to you, newest first."""
    return reading.list_contracts(
        caller=caller,
        state=State(params.state) if params.state else None,
        part=Part(params.role) if params.role else None,
        cursor=params.cursor,
        limit=params.limit,
    )


class AcceptContract(Params):
    """A contract to take up."""

    contract_id: Reference
    expected_version: Version | None = EXPECTED


@tool(
    "accept_contract",
    params=AcceptContract,
    source=Source.BUILTIN,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    idempotent=True,
)
def accept_contract(caller: Caller, params: AcceptContract, now: datetime) -> dict[str, Any]:
    """Take up a pending contract that is assigned to you; opens its mode for this session."""
    return services.accept_contract(
        contract_id=params.contract_id,
        expected_version=params.expected_version,
        caller=caller,
        now=now,
    )


class SubmitReport(Params):
    """A report on a contract."""

    contract_id: Reference
    kind: Literal["progress", "completion"] = Field(
        description="completion hands the work in: the contract goes to review"
    )
    title: Title
    body: MailBody
    report_type: Literal["status", "completion", "escalation", "cost"] | None = None
    expected_version: Version | None = EXPECTED


@tool("submit_report", params=SubmitReport, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def submit_report(caller: Caller, params: SubmitReport, now: datetime) -> dict[str, Any]:
    """Report on a contract of yours to its issuer: progress, or its completion."""
    return services.submit_report(
        contract_id=params.contract_id,
        kind=ReportKind(params.kind),
        title=params.title,
        body=params.body,
        report_type=ReportType(params.report_type) if params.report_type else None,
        expected_version=params.expected_version,
        caller=caller,
        now=now,
    )


class WriteVerdict(Params):
    """A verdict on finished work."""

    contract_id: Reference
    verdict: Literal["PASS", "FAIL"]
    evidence: MailBody | list[MailBody | dict[str, Any]] = Field(
        "", max_length=200, description="what was run and what it showed"
    )
    body: MailBody = ""


@tool("write_verdict", params=WriteVerdict, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def write_verdict(caller: Caller, params: WriteVerdict, now: datetime) -> dict[str, Any]:
    """Give QA's verdict, PASS or FAIL, on finished work of your department."""
    return judging.write_verdict(
        contract_id=params.contract_id,
        finding=Finding(params.verdict),
        evidence=params.evidence,
        body=params.body,
        caller=caller,
        now=now,
    )


class CloseContract(Params):
    """The end of a contract."""

    contract_id: Reference
    outcome: Literal["passed", "failed", "cancelled"]
    reason: Reason | None = Field(None, description="required to cancel")
    expected_version: Version | None = EXPECTED


@tool(
    "close_contract",
    params=CloseContract,
    source=Source.BUILTIN,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    destructive=True,
    idempotent=True,
)
def close_contract(caller: Caller, params: CloseContract, now: datetime) -> dict[str, Any]:
    """Close a contract that you issued: passed or failed after review, cancelled before."""
    outcome = Outcome(params.outcome)
    unsaid = "" if outcome is Outcome.CANCELLED else f"{outcome}, without a word"
    return closing.close_contract(
        contract_id=params.contract_id,
        outcome=outcome,
        reason=unsaid if params.reason is None else params.reason,
        expected_version=params.expected_version,
        caller=caller,
        now=now,
    )


class ApproveDeployment(Params):
    """The approval of one deployment (seed 000 §1.8)."""

    to: Name = Field(description="the worker that deploys")
    environment: Name = Field(
        description="lower-case, such as production",
        json_schema_extra={"pattern": "^[a-z][a-z0-9-]{0,62}$"},
    )
    artifact: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(
        description="the artefact's digest, such as sha256:…",
        json_schema_extra={"pattern": "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}$"},
    )
    expires_at: Moment = Field(description="ISO 8601; until when it can be used, once")
    reason: Reason


@tool(terms.APPROVE, params=ApproveDeployment, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def approve_deployment(caller: Caller, params: ApproveDeployment, now: datetime) -> dict[str, Any]:
    """Approve one deployment of one artefact to one environment, until a time."""
    return approvals.approve_deployment(
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


@tool("request_budget", params=RequestBudget, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def request_budget(caller: Caller, params: RequestBudget, now: datetime) -> dict[str, Any]:
    """Ask your superior for a budget; it answers with a contract of kind budget."""
    return approvals.request_budget(
        caller=caller,
        amount=params.amount,
        currency=params.currency,
        purpose=params.purpose,
        contract_ref=params.contract_ref,
        now=now,
    )
