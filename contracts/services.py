"""Working on a contract: accepting it and reporting on it (seed 000 §6.2)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from contracts import rows, rules
from contracts.models import Contract, Report
from contracts.results import ContractVersion, SubmittedReport
from contracts.rules import ContractFacts
from contracts.vocabulary import ReportKind
from core.actions import Action
from documents.models import ReportType
from documents.services import file_report
from ledger.services import record
from mailroom.delivery import send_as
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import ToolMode
from toolbox.caller import Caller
from toolbox.sessions import open_mode


def accept_contract(
    *, contract_id: str, expected_version: int | None, caller: Caller, now: datetime
) -> ContractVersion:
    """Accept a pending contract; opens the caller's session in the contract's mode.

    Raises Denied: NOT_FOUND, NOT_YOURS, VERSION_MISMATCH, INVALID_TRANSITION, MODE_DENIED.
    """
    with transaction.atomic():
        row, contract = rows.lock_contract(contract_id, caller)
        allowed = rules.can_accept(contract, caller.agent)
        caller.require(rules.at_version(contract, expected_version, allowed))
        row.accept(at=now)
        rows.save_contract(
            row, contract, Action.CONTRACT_ACCEPTED, caller=caller, now=now, reader=contract.issuer
        )
        if row.mode == ToolMode.CODING:
            open_mode(
                session_id=caller.session.id,
                mode=ToolMode.CODING,
                caller=caller,
                now=now,
                reason=f"{row.id} accepted",
                contract_ref=row.id,
            )
    return rows.version_result(row)


def submit_report(
    *,
    contract_id: str,
    kind: ReportKind,
    title: str,
    body: str,
    report_type: ReportType | None,
    expected_version: int | None,
    caller: Caller,
    now: datetime,
) -> SubmittedReport:
    """Report on a contract to its issuer, and file the report where managers read it; a
    completion moves the contract to review and ends its mode.

    Raises Denied: NOT_FOUND, NOT_YOURS, VERSION_MISMATCH, INVALID_TRANSITION.
    """
    with transaction.atomic():
        row, contract = rows.lock_contract(contract_id, caller)
        allowed = rules.can_submit(contract, caller.agent, kind)
        rule = caller.require(rules.at_version(contract, expected_version, allowed)).rule
        reader = rules.reader_of(contract.issuer, caller.agent, caller.policy)
        mail_id = send_as(
            caller=caller,
            recipient=reader,
            mail_type="report",
            subject=title,
            body=body,
            now=now,
            contract_ref=row.id,
            rule=rule,
        )
        report = Report.objects.create(
            contract=row,
            kind=kind,
            report_type=report_type or _default_type(kind),
            title=title,
            body=body,
            author_id=caller.agent.id,
            mail_id=mail_id,
            created_at=now,
        )
        file_report(
            caller=caller,
            title=title,
            body=body,
            report_type=report.report_type,
            reader=contract.issuer if isinstance(contract.issuer, Agent) else None,
            contract_ref=row.id,
            now=now,
        )
        _apply_report(row, contract, report, caller, now)
    return {"mail_id": mail_id, "report_id": str(report.id), **rows.version_result(row)}


def _default_type(kind: ReportKind) -> ReportType:
    return ReportType.COMPLETION if kind is ReportKind.COMPLETION else ReportType.STATUS


def _apply_report(
    row: Contract, contract: ContractFacts, report: Report, caller: Caller, now: datetime
) -> None:
    if report.kind == ReportKind.PROGRESS:
        record(
            Action.CONTRACT_REPORTED,
            by=caller,
            at=now,
            subject=f"contract:{row.id}",
            for_agent_id=row.issuer_id,
            kind="contract",
            details={"report": str(report.id), "state": str(row.state), "version": row.version},
        )
        return
    row.submit(at=now)
    rows.save_contract(
        row,
        contract,
        Action.CONTRACT_SUBMITTED,
        caller=caller,
        now=now,
        reader=contract.issuer,
        report=str(report.id),
    )
    rows.close_contract_mode(row, contract, caller, now)
