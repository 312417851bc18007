"""Working on a contract: accepting it and reporting on it (Spec: contracts 20, contracts 21)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts import rules, store
from contracts.authority import opens_rights
from contracts.evidence import submitted_commit
from contracts.models import Contract, Report
from contracts.results import ContractVersion, SubmittedReport
from contracts.rules import ContractFacts
from contracts.vocabulary import ReportKind
from core.actions import Action
from core.database import needs_transaction
from documents.models import ReportType
from documents.services import file_report
from ledger.services import record
from mailroom.delivery import MailDraft, send_as
from toolbox.caller import Caller
from toolbox.modes import bind_session


def accept_contract(
    *, contract_id: str, expected_version: int | None, caller: Caller, now: datetime
) -> ContractVersion:
    """Accept a pending contract; binds the caller's session to a contract that opens a mode,
    folders or a branch.

    Raises Denied: NOT_FOUND, NOT_YOURS, VERSION_MISMATCH, INVALID_TRANSITION, MODE_DENIED.
    """
    with transaction.atomic():
        row, contract = store.lock_contract(contract_id, caller)
        allowed = rules.can_accept(contract, caller.agent)
        caller.require(rules.at_version(contract, expected_version, allowed))
        row.accept(at=now)
        store.save_contract(
            row, contract, Action.CONTRACT_ACCEPTED, caller=caller, now=now, reader=contract.issuer
        )
        if opens_rights(contract):
            bind_session(
                session_id=caller.session.id,
                mode=contract.mode,
                caller=caller,
                now=now,
                reason=f"{row.id} accepted",
                contract_ref=row.id,
            )
    return store.version_result(row)


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
        row, contract = store.lock_contract(contract_id, caller)
        allowed = rules.can_submit(contract, caller.agent, kind)
        rule = caller.require(rules.at_version(contract, expected_version, allowed)).rule
        reader = rules.reader_of(contract, caller.agent, caller.policy)
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
        report = _insert_report(
            row, contract, ReportDraft(kind, title, body, report_type), mail_id, caller, now
        )
        if kind is ReportKind.COMPLETION:
            _submit(row, contract, report, caller, now)
        else:
            _record_progress(row, report, caller, now)
    return {"mail_id": mail_id, "report_id": str(report.id), **store.version_result(row)}


@needs_transaction
def submit_by_mail(caller: Caller, draft: MailDraft, mail_id: str, now: datetime) -> None:
    """Submit a contract's work by a report that was just sent: roles without submit_report.

    Raises Denied: NOT_FOUND, NOT_YOURS, INVALID_TRANSITION, INVALID_PARAMS for a role with
    submit_report or a mail to another reader; the mail is then not sent either.
    """
    row, contract = store.lock_contract(draft.contract_ref or "", caller)
    to = caller.policy.resolve(draft.to)
    caller.require(
        rules.can_submit_by_mail(
            contract, caller.agent, to.handle if to else draft.to, caller.policy
        )
    )
    written = ReportDraft(ReportKind.COMPLETION, draft.subject, draft.body)
    report = _insert_report(row, contract, written, mail_id, caller, now)
    _submit(row, contract, report, caller, now)


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report as its author wrote it."""

    kind: ReportKind
    title: str
    body: str
    report_type: ReportType | None = None


def _insert_report(
    row: Contract,
    contract: ContractFacts,
    draft: ReportDraft,
    mail_id: str,
    caller: Caller,
    now: datetime,
) -> Report:
    """Insert the report, a completion with its number, and file it where managers read it."""
    is_completion = draft.kind is ReportKind.COMPLETION
    before = Report.objects.filter(contract_id=row.id, submission__isnull=False).count()
    report = Report.objects.create(
        organisation_id=row.organisation_id,
        contract=row,
        kind=draft.kind,
        submission=before + 1 if is_completion else None,
        report_type=draft.report_type
        or (ReportType.COMPLETION if is_completion else ReportType.STATUS),
        title=draft.title,
        body=draft.body,
        author_id=caller.agent.id,
        mail_id=mail_id,
        commit=submitted_commit(row) if is_completion else "",
        created_at=now,
    )
    file_report(
        caller=caller,
        title=draft.title,
        body=draft.body,
        report_type=report.report_type,
        department=contract.department,
        contract_ref=row.id,
        now=now,
    )
    return report


def _record_progress(row: Contract, report: Report, caller: Caller, now: datetime) -> None:
    record(
        Action.CONTRACT_REPORTED,
        by=caller,
        at=now,
        subject=f"contract:{row.id}",
        for_agent_id=row.issuer_id,
        kind="contract",
        details={"report": str(report.id), "state": str(row.state), "version": row.version},
    )


def _submit(
    row: Contract, contract: ContractFacts, report: Report, caller: Caller, now: datetime
) -> None:
    row.submit(at=now)
    store.save_contract(
        row,
        contract,
        Action.CONTRACT_SUBMITTED,
        caller=caller,
        now=now,
        reader=contract.issuer,
        report=str(report.id),
        submission=report.submission,
        **({"commit": report.commit} if report.commit else {}),
    )
    store.close_contract_mode(row, contract, caller, now)
