"""QA's verdicts on finished work (seed 000 §1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from pydantic_core import to_json

from contracts import rules, store
from contracts.models import Contract, Verdict
from contracts.rules import Facts
from contracts.vocabulary import Finding
from core.actions import Action
from core.decision import Code, refuse
from ledger.services import record
from mailroom.delivery import send_as, send_system_mail
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import BOARD_PARTY
from toolbox.caller import Caller

MAIL_BODY = 10_000


def write_verdict(
    *,
    contract_id: str,
    finding: Finding,
    evidence: str | Sequence[Any],
    body: str,
    caller: Caller,
    now: datetime,
) -> dict[str, Any]:
    """Say what QA found in finished work; the contract's state stays for its issuer to decide.

    Raises Denied: NOT_FOUND outside the judge's department, NOT_YOURS for work of its own,
    INVALID_TRANSITION outside review, INVALID_PARAMS where nothing backs the finding.
    """
    with transaction.atomic():
        row = store.find(contract_id, caller.organisation_id, lock=True)
        contract = store.facts_of(row, caller.policy)
        rule = caller.require(rules.can_judge(contract, caller.agent, caller.policy)).rule
        if not evidence and not body.strip():
            raise refuse(
                Code.INVALID_PARAMS,
                "evidence: a verdict says what it stands on",
                "name the tests run and what they showed",
                rule="a verdict has evidence",
                evidence="must not be empty",
            )
        above = rules.reader_of(contract.issuer, caller.agent, caller.policy)
        mail_id = send_as(
            caller=caller,
            recipient=above or BOARD_PARTY,
            mail_type="verdict",
            subject=f"{finding}: {row.title}",
            body=_verdict_text(row, finding, evidence, body),
            now=now,
            contract_ref=row.id,
            rule=rule,
        )
        verdict = Verdict.objects.create(
            contract=row,
            report=store.completion_of(row),
            finding=finding,
            evidence=evidence,
            body=body,
            judge_id=caller.agent.id,
            mail_id=mail_id,
            created_at=now,
        )
        _tell_of_verdict(row, contract, verdict, above, caller, now)
    return {"verdict_id": str(verdict.id), "mail_id": mail_id}


def _verdict_text(row: Contract, finding: Finding, evidence: Any, body: str) -> str:
    shown = evidence if isinstance(evidence, str) else to_json(evidence, indent=1).decode()
    parts = [f"{finding} on {row.id}", body, f"Evidence:\n{shown}" if shown else ""]
    return "\n\n".join(part for part in parts if part)[:MAIL_BODY]


def _tell_of_verdict(
    row: Contract,
    contract: Facts,
    verdict: Verdict,
    above: Agent | None,
    caller: Caller,
    now: datetime,
) -> None:
    """An issuer that QA may not write to hears of the verdict from the system (C-03 holds)."""
    record(
        Action.VERDICT_GIVEN,
        by=caller,
        at=now,
        subject=f"contract:{row.id}",
        for_agent_id=row.issuer_id,
        kind="contract",
        details={"verdict": str(verdict.id), "finding": verdict.finding},
    )
    if contract.issuer is not None and contract.issuer.active and contract.issuer != above:
        send_system_mail(
            organisation_id=row.organisation_id,
            recipient=contract.issuer,
            subject=f"{verdict.finding}: {row.title}",
            body=f"QA gave {verdict.finding} on {row.id}; {caller.agent.superior} has the details.",
            now=now,
            contract_ref=row.id,
        )
