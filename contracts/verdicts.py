"""QA's verdicts on finished work (Spec: contracts 26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from pydantic_core import to_json

from contracts import rules, store
from contracts.evidence import run_digest
from contracts.models import Contract, Verdict
from contracts.results import GivenVerdict
from contracts.rules import ContractFacts
from contracts.vocabulary import VerdictFinding
from core.actions import Action
from core.decision import Code, refuse
from core.limits import MAX_MAIL_BODY
from ledger.services import record
from mailroom.delivery import send_as, send_system_mail
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import Party
from toolbox.caller import Caller

MAX_EVIDENCE = 64 * 1024
"""Bytes of JSON: a contract is read with the evidence of 50 verdicts."""


def write_verdict(
    *,
    contract_id: str,
    finding: VerdictFinding,
    evidence: str | Sequence[Any],
    body: str,
    expected_version: int | None,
    caller: Caller,
    now: datetime,
) -> GivenVerdict:
    """Record what QA found in the submission; the issuer decides on the contract's state.

    With the version that was read, the verdict is never on a submission that came after it. Raises
    Denied: NOT_FOUND outside the judge's department, NOT_YOURS for work of its own,
    VERSION_MISMATCH, INVALID_TRANSITION outside review or for a second verdict on one submission,
    INVALID_PARAMS without evidence or with too much.
    """
    with transaction.atomic():
        row = store.find_contract(contract_id, caller.organisation_id, lock=True)
        writers = store.writers_of_terms(row.id)
        makers = store.makers_among([caller.agent.id], row.assigned_branch, row.organisation_id)
        contract = replace(
            store.contract_facts(row, caller.policy, store.latest_submission(row)),
            makers=makers | writers,
        )
        judging = rules.can_judge(contract, caller.agent, caller.policy)
        rule = caller.require(rules.at_version(contract, expected_version, judging)).rule
        submission = contract.submission
        assert submission is not None  # noqa: S101  can_judge requires one; narrows the type
        if not evidence and not body.strip():
            raise refuse(
                Code.INVALID_PARAMS,
                "evidence: a verdict needs evidence",
                "name the tests run and what they showed",
                rule="a verdict has evidence",
                evidence="must not be empty",
            )
        if len(to_json(evidence)) > MAX_EVIDENCE:
            raise refuse(
                Code.INVALID_PARAMS,
                f"evidence: more than {MAX_EVIDENCE} bytes",
                "name the runs and what they showed; a run keeps its whole log",
                rule="a verdict has evidence",
                evidence=f"more than {MAX_EVIDENCE} bytes",
            )
        reader = rules.reader_of(contract, caller.agent, caller.policy)
        mail_id = send_as(
            caller=caller,
            recipient=reader,
            mail_type="verdict",
            subject=f"{finding}: {row.title}",
            body=_verdict_text(row, finding, evidence, body, submission.commit),
            now=now,
            contract_ref=row.id,
            rule=rule,
        )
        verdict = Verdict.objects.create(
            organisation_id=row.organisation_id,
            contract=row,
            report_id=submission.report_id,
            finding=finding,
            evidence=evidence,
            body=body,
            judge_id=caller.agent.id,
            mail_id=mail_id,
            commit=submission.commit,
            run_digest=run_digest(caller, submission.commit),
            created_at=now,
        )
        _record_verdict(row, contract, verdict, reader, writers, caller, now)
    return {
        "verdict_id": str(verdict.id),
        "mail_id": mail_id,
        "commit": verdict.commit or None,
        "run_digest": verdict.run_digest or None,
    }


def _verdict_text(
    row: Contract, finding: VerdictFinding, evidence: Any, body: str, commit: str
) -> str:
    shown = evidence if isinstance(evidence, str) else to_json(evidence, indent=1).decode()
    about = f"{finding} on {row.id}" + (f", commit {commit}" if commit else "")
    parts = [about, body, f"Evidence:\n{shown}" if shown else ""]
    return "\n\n".join(part for part in parts if part)[:MAX_MAIL_BODY]


def _record_verdict(
    row: Contract,
    contract: ContractFacts,
    verdict: Verdict,
    reader: Party,
    writers: frozenset[int],
    caller: Caller,
    now: datetime,
) -> None:
    """Record the event; an issuer that QA may not write to gets a system mail (Spec: mail 15)."""
    record(
        Action.VERDICT_GIVEN,
        by=caller,
        at=now,
        subject=f"contract:{row.id}",
        for_agent_id=row.issuer_id,
        kind="contract",
        details={
            "verdict": str(verdict.id),
            "finding": verdict.finding,
            **({"commit": verdict.commit} if verdict.commit else {}),
            **({"run_digest": verdict.run_digest} if verdict.run_digest else {}),
        },
    )
    issuer = contract.issuer
    if isinstance(issuer, Agent) and issuer.active and issuer != reader:
        send_system_mail(
            organisation_id=row.organisation_id,
            recipient=issuer,
            subject=f"{verdict.finding}: {row.title}",
            body=f"QA gave {verdict.finding} on {row.id}; {caller.agent.superior} has the details.",
            quotes=writers,
            now=now,
            contract_ref=row.id,
        )
