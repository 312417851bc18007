"""What agents can do with contracts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from contracts import closing, queries, services, verdicts
from contracts.approvals import tools as approval_tools
from contracts.issuing import tools as issuing_tools
from contracts.results import (
    ContractDetail,
    ContractPage,
    ContractVersion,
    GivenVerdict,
    SubmittedReport,
)
from contracts.vocabulary import (
    ContractOutcome,
    ContractSide,
    ContractState,
    ReportKind,
    VerdictFinding,
)
from core.params import (
    MailBody,
    Page,
    Params,
    Reason,
    Reference,
    Title,
    Version,
)
from documents.models import ReportType
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

__all__ = ["approval_tools", "issuing_tools"]
EXPECTED = Field(None, description="the version you saw")


class ReadContract(Params):
    """One contract."""

    contract_id: Reference


@tool("read_contract", group=ToolGroup.CONTRACT, modes=ANY_MODE, read_only=True)
def read_contract(caller: Caller, params: ReadContract, now: datetime) -> ContractDetail:
    """Read one contract whole, with its reports and verdicts."""
    return queries.read_contract(caller=caller, contract_id=params.contract_id)


class ListContracts(Page):
    """A page of contracts, or one of them whole."""

    contract_id: Reference | None = Field(
        None, description="one contract whole, with its reports and verdicts"
    )
    state: Literal["pending", "in_progress", "review", "passed", "failed", "cancelled"] | None = (
        None
    )
    role: Literal["issued", "assigned"] | None = Field(None, description="default both")


@tool(
    "list_contracts",
    source=Source.BUILTIN,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    read_only=True,
)
def list_contracts(
    caller: Caller, params: ListContracts, now: datetime
) -> ContractPage | ContractDetail:
    """List the contracts that you issued or were assigned, newest first, or read one."""
    if params.contract_id is not None:
        return queries.read_contract(caller=caller, contract_id=params.contract_id)
    return queries.list_contracts(
        caller=caller,
        state=ContractState(params.state) if params.state else None,
        side=ContractSide(params.role) if params.role else None,
        cursor=params.cursor,
        limit=params.limit,
    )


class AcceptContract(Params):
    """A contract to accept."""

    contract_id: Reference
    expected_version: Version | None = EXPECTED


@tool(
    "accept_contract",
    source=Source.BUILTIN,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    idempotent=True,
)
def accept_contract(caller: Caller, params: AcceptContract, now: datetime) -> ContractVersion:
    """Accept a pending contract that is assigned to you; opens its mode for this session."""
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
        description="completion submits the work for review"
    )
    title: Title
    body: MailBody
    report_type: Literal["status", "completion", "escalation", "cost"] | None = None
    expected_version: Version | None = EXPECTED


@tool("submit_report", group=ToolGroup.CONTRACT, modes=ANY_MODE)
def submit_report(caller: Caller, params: SubmitReport, now: datetime) -> SubmittedReport:
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
    evidence: MailBody | Annotated[list[MailBody | dict[str, Any]], Field(max_length=200)] = Field(
        "", description="what was run and what it showed"
    )
    body: MailBody = ""
    expected_version: Version | None = EXPECTED


@tool("write_verdict", group=ToolGroup.CONTRACT, modes=ANY_MODE)
def write_verdict(caller: Caller, params: WriteVerdict, now: datetime) -> GivenVerdict:
    """Give QA's verdict, PASS or FAIL, on finished work of your department."""
    return verdicts.write_verdict(
        contract_id=params.contract_id,
        finding=VerdictFinding(params.verdict),
        evidence=params.evidence,
        body=params.body,
        expected_version=params.expected_version,
        caller=caller,
        now=now,
    )


class CloseContract(Params):
    """The end of a contract."""

    contract_id: Reference
    outcome: Literal["passed", "failed", "cancelled", "rework"] = Field(
        description="rework sends reviewed work back to its assignee"
    )
    reason: Reason | None = Field(None, description="required to cancel and for rework")
    expected_version: Version | None = EXPECTED


@tool(
    "close_contract",
    source=Source.BUILTIN,
    group=ToolGroup.CONTRACT,
    modes=ANY_MODE,
    destructive=True,
    idempotent=True,
)
def close_contract(caller: Caller, params: CloseContract, now: datetime) -> ContractVersion:
    """Close a contract that you issued: passed or failed after review, cancelled before; or send
    reviewed work back (rework).
    """
    outcome = ContractOutcome(params.outcome)
    unexplained = (ContractOutcome.PASSED, ContractOutcome.FAILED)
    default = f"{outcome}, no reason given" if outcome in unexplained else ""
    return closing.close_contract(
        contract_id=params.contract_id,
        outcome=outcome,
        reason=default if params.reason is None else params.reason,
        expected_version=params.expected_version,
        caller=caller,
        now=now,
    )
