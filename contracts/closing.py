"""Ending a contract: passed, failed or cancelled, by its issuer or the Board."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from contracts import rules, store
from contracts.models import Contract
from contracts.rules import Facts
from contracts.vocabulary import Outcome, State
from core.actions import Action
from core.actors import Actor, Person
from core.deeds import Deed, require_deed
from mailroom.delivery import send_system_mail
from mailroom.services import close_grants
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Policy
from toolbox.caller import Caller


def close_contract(
    *,
    contract_id: str,
    outcome: Outcome,
    reason: str,
    expected_version: int | None,
    caller: Caller | Person,
    now: datetime,
) -> dict[str, Any]:
    """End a contract; its mode and its channels end with it, and its assignee is told.

    The issuer decides, a person of the Board cancels (and decides on the Board's own). Raises
    Denied: NOT_FOUND, NOT_YOURS, INVALID_PARAMS, VERSION_MISMATCH, INVALID_TRANSITION,
    APPROVAL_REQUIRED where QA has not passed the work, LEVEL_DENIED for a person without office.
    """
    with transaction.atomic():
        if isinstance(caller, Person):
            require_deed(caller, Deed.CANCEL_CONTRACT, reason=reason)
            policy, who = current_policy(caller.organisation_id), None
            row = store.find(contract_id, caller.organisation_id, lock=True)
        else:
            policy, who = caller.policy, caller.agent
            row, _ = store.locked(contract_id, caller)
        contract = _with_finding(row, outcome, policy)
        allowed = rules.can_close(contract, who, outcome, reason, policy)
        caller.require(rules.at_version(contract, expected_version, allowed))
        if outcome is not Outcome.CANCELLED and rules.awaits_report(contract, policy):
            contract = _taken_into_review(row, contract, caller, now)
        _closed(row, contract, outcome, reason.strip(), caller, now)
    return store.result_of(row)


def _with_finding(row: Contract, outcome: Outcome, policy: Policy) -> Facts:
    asked = outcome is Outcome.PASSED and row.workspace_scope and row.state == State.REVIEW
    return store.facts_of(row, policy, store.latest_finding(row) if asked else None)


def _taken_into_review(row: Contract, contract: Facts, caller: Actor, now: datetime) -> Facts:
    """Work that was reported by mail: its issuer takes it into review as it decides on it."""
    row.submit(at=now)
    store.advance(
        row, contract, Action.CONTRACT_SUBMITTED, caller=caller, now=now, tell=contract.assignee
    )
    store.end_mode(row, contract, caller, now)
    return replace(contract, state=State.REVIEW, version=row.version)


def _closed(
    row: Contract, contract: Facts, outcome: Outcome, reason: str, caller: Actor, now: datetime
) -> None:
    close = {
        Outcome.PASSED: row.close_passed,
        Outcome.FAILED: row.close_failed,
        Outcome.CANCELLED: row.close_cancelled,
    }[outcome]
    close(at=now, by=caller.actor, reason=reason)
    store.advance(
        row,
        contract,
        Action(f"contract.{outcome}"),
        caller=caller,
        now=now,
        tell=contract.assignee,
        reason=reason,
    )
    store.end_mode(row, contract, caller, now)
    if row.grants:
        close_grants(caller=caller, contract_ref=row.id, now=now)
    if contract.assignee.active:
        send_system_mail(
            organisation_id=row.organisation_id,
            recipient=contract.assignee,
            subject=f"{outcome}: {row.title}",
            body=f"{contract.issuer_name}'s contract {row.id} is {outcome}: {reason}",
            now=now,
            contract_ref=row.id,
        )
