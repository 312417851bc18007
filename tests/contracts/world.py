"""Contracts at every state, made by the services themselves; calls that run at the same time."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from contracts import closing, services, verdicts
from contracts.approvals import deployments
from contracts.issuing.changes import NamedChange
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.models import Contract
from contracts.vocabulary import (
    ContractKind,
    ContractOutcome,
    ContractState,
    OrgAct,
    ReportKind,
    VerdictFinding,
)
from core.decision import Denied
from orgchart.policy.vocabulary import ToolMode
from tests import concurrency
from tests.company import Company

DIGEST = "sha256:" + "a" * 64


def now():
    return timezone.now()


def issue(
    company: Company,
    to: str = "backend_worker",
    *,
    by: str = "it_manager",
    tool: str = "create_contract",
    coding: bool = False,
    **fields: Any,
) -> str:
    """A pending contract's id."""
    draft = ContractDraft(
        to=to,
        **{"title": "Login", "body": "Build it.", **fields},
        **({"mode": ToolMode.CODING} if coding else {}),
    )
    done = issue_contract(caller=company.caller(by), draft=draft, tool=tool, now=now())
    return done["contract_id"]


def org_change(company: Company, *changes: str, accepted: bool = True, **fields: Any) -> str:
    """A contract by which HR may carry out the changes, each written as `act subject`, once."""
    named = [NamedChange(OrgAct(act), who) for act, who in (each.split() for each in changes)]
    contract_id = issue(
        company, "hr_manager", by="ceo", tool="generate_contract",
        kind=ContractKind.ORG_CHANGE, changes=named, **fields,
    )  # fmt: skip
    if accepted:
        accept(company, contract_id, by="hr_manager")
    return contract_id


def accept(company: Company, contract_id: str, *, by: str = "backend_worker", version=None):
    return services.accept_contract(
        contract_id=contract_id, expected_version=version, caller=company.caller(by), now=now()
    )


def submit(
    company: Company,
    contract_id: str,
    *,
    by: str = "backend_worker",
    kind=ReportKind.COMPLETION,
    version=None,
    at=None,
):
    return services.submit_report(
        contract_id=contract_id,
        kind=kind,
        title="Done",
        body="It works.",
        report_type=None,
        expected_version=version,
        caller=company.caller(by),
        now=at or now(),
    )


def submit_by_mail(company: Company, contract_id: str, *, by: str = "it_manager", **fields: Any):
    """The call of send_mail that submits a contract's work, as its assignee makes it."""
    mail = {
        "to": "ceo", "type": "report", "subject": "It is done", "body": "All of it.",
        "contract_ref": contract_id, "submits": True, **fields,
    }  # fmt: skip
    return company.call(by, "send_mail", **{k: v for k, v in mail.items() if v is not None})


def judge(company: Company, contract_id: str, finding="PASS", *, by: str = "qa_worker", **fields):
    return verdicts.write_verdict(
        contract_id=contract_id,
        finding=VerdictFinding(finding),
        **{"evidence": "42 tests passed", "body": "", "expected_version": None, **fields},
        caller=company.caller(by),
        now=now(),
    )


def close(
    company: Company,
    contract_id: str,
    outcome="passed",
    *,
    by: Any = "it_manager",
    reason: str = "done",
    version=None,
):
    """Close it as an agent (its handle) or as a person."""
    return closing.close_contract(
        contract_id=contract_id,
        outcome=ContractOutcome(outcome),
        reason=reason,
        expected_version=version,
        caller=company.caller(by) if isinstance(by, str) else by,
        now=now(),
    )


def at_state(company: Company, state: str | ContractState, **fields: Any) -> str:
    """A backend worker's contract in that state."""
    contract_id = issue(company, **fields)
    if state == ContractState.PENDING:
        return contract_id
    if state == ContractState.CANCELLED:
        close(company, contract_id, "cancelled")
        return contract_id
    accept(company, contract_id)
    if state == ContractState.IN_PROGRESS:
        return contract_id
    submit(company, contract_id)
    if state in (ContractState.PASSED, ContractState.FAILED):
        code = {"workspace_scope", "assigned_branch", "coding"} & fields.keys()
        if code and state == ContractState.PASSED:
            judge(company, contract_id)
        close(company, contract_id, str(state))
    return contract_id


def approve(company: Company, *, to="devops_worker", by="it_manager", hours=1.0, **fields) -> str:
    done = deployments.approve_deployment(
        caller=company.caller(by),
        to=to,
        now=now(),
        **{
            "environment": "production",
            "artifact": DIGEST,
            "expires_at": now() + timedelta(hours=hours),
            "reason": "release 1.2",
            **fields,
        },
    )
    return done["contract_id"]


def row(contract_id: str) -> Contract:
    return Contract.objects.get(id=contract_id)


def refusal(act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The Deny that an action ends in; fails where it is carried out."""
    try:
        done = act(*args, **kwargs)
    except Denied as denied:
        return denied.deny
    raise AssertionError(f"not refused: {done}")


at_once = partial(concurrency.at_once, raising=True)
