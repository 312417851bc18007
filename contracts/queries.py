"""Reading contracts: one in detail, pages of an agent's own, open ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from contracts import rules
from contracts.judging import SubmissionFacts, submission_of
from contracts.models import Contract, Report, Verdict
from contracts.results import ContractDetail, ContractPage, ContractSummary, ContractVerdict
from contracts.rules import ContractFacts
from contracts.store import agent_of, contract_facts, find_contract, issuer_of
from contracts.vocabulary import (
    OPEN_STATES,
    ContractKind,
    ContractSide,
    ContractState,
    OrgAct,
    ReportKind,
    VerdictFinding,
)
from core import paging
from core.database import planned_for_values
from core.decision import Allow, Denied, Deny
from documents.models import ReportType
from documents.reports import has_denied_report
from mailroom.models import Priority
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import ToolMode
from toolbox.caller import Caller

MOST = 50
"""Reports, and verdicts, in one answer: an agent can write as many as it may make calls."""


def read_contract(*, caller: Caller, contract_id: str) -> ContractDetail:
    """One contract with its newest reports and verdicts, if the caller may see it.

    Raises Denied NOT_FOUND, also for what the caller may not see.
    """
    row = find_contract(contract_id, caller.organisation_id)
    contract = contract_facts(row, caller.policy)
    seen = rules.can_see(contract, caller.agent, caller.policy)
    if isinstance(seen, Deny):
        seen = rules.can_see(contract, caller.agent, caller.policy, judged=_has_judged(row, caller))
    caller.require(seen)
    if _is_kept_from(row, contract, caller):
        raise Denied(rules.not_found())
    reports = list(row.reports.order_by("-id")[: MOST + 1])
    verdicts = list(row.verdicts.order_by("-id")[: MOST + 1])
    return {
        **summary(row, caller.policy),
        "closed_reason": _reason_for(row, contract, caller),
        "body": row.body,
        "changes": [
            {
                "act": OrgAct(line.act),
                "subject": line.subject,
                "role": line.role or None,
                "reports_to": line.reports_to or None,
                "co_managers": line.co_managers,
                "skills": line.skills,
                "group": line.group or None,
                "leads": line.leads or None,
                "used_at": line.used_at,
            }
            for line in row.changes.all()
        ],
        "reports": [
            {
                "report_id": str(r.id),
                "kind": ReportKind(r.kind),
                "submission": r.submission,
                "report_type": ReportType(r.report_type),
                "title": r.title,
                "body": r.body,
                "commit": r.commit or None,
                "created_at": r.created_at,
            }
            for r in reports[:MOST]
        ],
        "verdicts": [_verdict(v, contract, caller) for v in verdicts[:MOST]],
        "truncated": len(reports) > MOST or len(verdicts) > MOST,
    }


def _verdict(row: Verdict, contract: ContractFacts, caller: Caller) -> ContractVerdict:
    """A verdict; its words only where the reader may read them."""
    judge = agent_of(caller.policy, row.judge_id)
    told = rules.can_read_evidence(contract, judge, caller.agent, caller.policy)
    is_told = isinstance(told, Allow)
    return {
        "verdict_id": str(row.id),
        "report_id": str(row.report_id),
        "verdict": VerdictFinding(row.finding),
        "evidence": row.evidence if is_told else "",
        "body": row.body if is_told else "",
        "judge": judge.handle,
        "commit": row.commit or None,
        "run_digest": row.run_digest or None,
        "created_at": row.created_at,
    }


def _is_kept_from(row: Contract, contract: ContractFacts, caller: Caller) -> bool:
    """Whether reports on a contract lie where the role of an agent above it is denied to read.

    An assignee that moved to another department brings its contracts along (Spec: contracts 56).
    """
    if caller.agent.id in (row.issuer_id, row.assignee_id):
        return False
    is_above = caller.policy.is_above(caller.agent, contract.assignee)
    return is_above and has_denied_report(caller, row.id)


def _reason_for(row: Contract, contract: ContractFacts, caller: Caller) -> str | None:
    """Why a contract was closed; what an agent said of it only where it may tell the reader."""
    if row.closed_by.startswith("agent:"):
        told = rules.can_read_reason(contract, caller.agent, caller.policy)
        if isinstance(told, Deny):
            return None
    return row.closed_reason or None


def _has_judged(row: Contract, caller: Caller) -> bool:
    return Verdict.objects.filter(contract_id=row.id, judge_id=caller.agent.id).exists()


def summary(row: Contract, policy: Policy) -> ContractSummary:
    """A contract without its text."""
    return {
        "contract_id": row.id,
        "kind": ContractKind(row.kind),
        "state": row.state,
        "version": row.version,
        "title": row.title,
        "issuer": issuer_of(row, policy).handle,
        "assignee": agent_of(policy, row.assignee_id).handle,
        "priority": Priority(row.priority),
        "deadline": row.deadline,
        "mode": ToolMode(row.mode),
        "workspace_scope": row.workspace_scope,
        "assigned_branch": row.assigned_branch or None,
        "grants": row.grants,
        "supersedes": row.supersedes_id,
        "answers": None if row.answers_id is None else str(row.answers_id),
        "request": row.request_id,
        "environment": row.environment or None,
        "artifact": row.artifact or None,
        "expires_at": row.expires_at,
        "used_at": row.used_at,
        "amount": None if row.amount is None else str(row.amount),
        "currency": row.currency or None,
        "mail_id": row.notice_id,
        "created_at": row.created_at,
        "accepted_at": row.accepted_at,
        "submitted_at": row.submitted_at,
        "closed_at": row.closed_at,
        "closed_by": row.closed_by or None,
        "closed_reason": row.closed_reason or None,
    }


def list_contracts(
    *,
    caller: Caller,
    state: ContractState | None = None,
    side: ContractSide | None = None,
    cursor: str | None = None,
    limit: int = paging.DEFAULT_LIMIT,
) -> ContractPage:
    """One page of the contracts that the caller issued or works on, newest first.

    Raises Denied INVALID_PARAMS for a cursor that no list gave.
    """
    before = paging.decode(cursor, prefix="CON-")
    sides = {
        ContractSide.ISSUED: Contract.objects.filter(issuer_id=caller.agent.id),
        ContractSide.ASSIGNED: Contract.objects.filter(assignee_id=caller.agent.id),
    }
    pages = [
        _page(rows, state, before, limit) for each, rows in sides.items() if side in (None, each)
    ]
    merged = pages[0] if side else pages[0].union(*pages[1:], all=True).order_by("-id")
    with planned_for_values():
        found = list(merged[: limit + 1])
    shown, more = paging.cut(found, limit, lambda row: row.id)
    return {"contracts": [summary(row, caller.policy) for row in shown], "next_cursor": more}


def _page(
    rows: QuerySet[Contract], state: ContractState | None, before: str | None, limit: int
) -> QuerySet[Contract]:
    """One side's page, on an index of its own; the two are merged."""
    if state is not None:
        rows = rows.filter(state=state)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return rows.defer("body").order_by("-id")[: limit + 1]


def open_contracts_of(agent_id: int) -> QuerySet[Contract]:
    """Contracts that are not closed and have the agent on either side."""
    return Contract.objects.filter(
        Q(issuer_id=agent_id) | Q(assignee_id=agent_id), state__in=OPEN_STATES
    )


@dataclass(frozen=True, slots=True)
class SubmissionInReview:
    """A contract in review, the commit that was submitted, and whether a judge has judged it."""

    contract: Contract
    commit: str
    is_judged: bool


def submissions_in_review(organisation_id: int, judge_id: int) -> Iterator[SubmissionInReview]:
    """The submissions in review of contracts with a branch, newest first, as one judge has them.

    One statement reads all of them, for each file of a judged commit that is read asks for them.
    """
    latest = Report.objects.filter(contract_id=OuterRef("id"), submission__isnull=False)
    latest = latest.order_by("-submission")
    verdicts = Verdict.objects.filter(contract_id=OuterRef("id"), judge_id=judge_id)
    rows: Any = Contract.objects.filter(organisation_id=organisation_id, state=ContractState.REVIEW)
    rows = rows.exclude(assigned_branch="").annotate(
        submitted=Subquery(latest.values("id")[:1]),
        commit=Subquery(latest.values("commit")[:1]),
        judged=Subquery(verdicts.order_by("-report_id").values("report_id")[:1]),
    )
    for row in rows.defer("body").order_by("-id"):
        yield SubmissionInReview(row, row.commit or "", row.submitted == row.judged)


@dataclass(frozen=True, slots=True)
class JudgedSubmission:
    """The latest submission of a contract, and the PASS on it: its verdict and its commit."""

    submission: SubmissionFacts | None = None
    passed_by: int | None = None
    passed_commit: str = ""


def judged_submission(row: Contract) -> JudgedSubmission:
    """The latest submission with its verdicts, whatever the contract's state is now.

    Of a submission with a FAIL there is no PASS (Spec: contracts 47).
    """
    reports = Report.objects.filter(contract_id=row.id, submission__isnull=False)
    report = reports.order_by("-submission").first()
    if report is None:
        return JudgedSubmission()
    verdicts = list(Verdict.objects.filter(report_id=report.id).order_by("-id"))
    submission = submission_of(report.id, ((v.finding, v.judge_id) for v in verdicts))
    if submission.finding is not VerdictFinding.PASS:
        return JudgedSubmission(submission)
    return JudgedSubmission(submission, verdicts[0].id, verdicts[0].commit)
