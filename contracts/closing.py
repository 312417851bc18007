"""Closing a contract: passed, failed or cancelled, or sent back, by its issuer or the Board."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from contracts import rules, store
from contracts.deadlines import reopen_deadlines
from contracts.models import Contract
from contracts.results import ContractVersion
from contracts.rules import ContractFacts
from contracts.vocabulary import ContractOutcome
from core.actions import Action
from core.actors import Actor, Person
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from mailroom.delivery import send_system_mail
from mailroom.services import close_grants
from orgchart.policy.compiled import Policy
from orgchart.policy.parties import BOARD_PARTY, Party
from orgchart.policy_cache import current_policy
from toolbox.caller import Caller
from toolbox.quoting import one_line

ACTIONS = {
    ContractOutcome.PASSED: Action.CONTRACT_PASSED,
    ContractOutcome.FAILED: Action.CONTRACT_FAILED,
    ContractOutcome.CANCELLED: Action.CONTRACT_CANCELLED,
    ContractOutcome.REWORK: Action.CONTRACT_SENT_BACK,
}


def close_contract(
    *,
    contract_id: str,
    outcome: ContractOutcome,
    reason: str,
    expected_version: int | None,
    caller: Caller | Person,
    now: datetime,
) -> ContractVersion:
    """Close a contract with its mode and its channels, or send it back; notify its assignee.

    The issuer decides, a person of the Board cancels (and decides on the Board's own). Raises
    Denied: NOT_FOUND, NOT_YOURS, INVALID_PARAMS, VERSION_MISMATCH, INVALID_TRANSITION,
    APPROVAL_REQUIRED where QA has not passed the work, LEVEL_DENIED for a person without office.
    """
    with transaction.atomic():
        if isinstance(caller, Person):
            require_deed(caller, Deed.CANCEL_CONTRACT, reason=reason)
            policy: Policy = current_policy(caller.organisation_id)
            party: Party = BOARD_PARTY
            row = store.find_contract(contract_id, caller.organisation_id, lock=True)
        else:
            policy, party = caller.policy, caller.agent
            row, _ = store.lock_contract(contract_id, caller)
        contract = store.contract_facts(row, policy, store.latest_submission(row))
        allowed = rules.can_close(contract, party, outcome, reason, policy)
        caller.require(rules.at_version(contract, expected_version, allowed))
        was = f"contract {row.state}"
        told = rules.reason_told(contract, party, reason.strip(), policy)
        if outcome is ContractOutcome.REWORK:
            reopen_deadlines(row)
            row.rework()
        else:
            _close(row, outcome, told, caller, now)
        _save(row, contract, outcome, (reason.strip(), told), caller, now)
        record_intervention(
            caller,
            deed=Deed.CANCEL_CONTRACT,
            subject=f"contract:{row.id}",
            trigger_condition=was,
            action_taken=f"close_contract_{outcome}",
            reason=reason,
            now=now,
        )
    return store.version_result(row)


def _close(
    row: Contract, outcome: ContractOutcome, reason: str, caller: Actor, now: datetime
) -> None:
    close = {
        ContractOutcome.PASSED: row.close_passed,
        ContractOutcome.FAILED: row.close_failed,
        ContractOutcome.CANCELLED: row.close_cancelled,
    }[outcome]
    close(at=now, by=caller.actor, reason=reason)


def _save(
    row: Contract,
    contract: ContractFacts,
    outcome: ContractOutcome,
    reasons: tuple[str, str],
    caller: Actor,
    now: datetime,
) -> None:
    """Save with the given reason in the ledger; the assignee reads the one that it may be told."""
    given, told = reasons
    store.save_contract(
        row,
        contract,
        ACTIONS[outcome],
        caller=caller,
        now=now,
        reader=contract.assignee if told == given else contract.issuer,
        reason=given,
    )
    store.close_contract_mode(row, contract, caller, now)
    if outcome is ContractOutcome.REWORK:
        store.reopen_contract_mode(row, caller, now)
    elif row.grants:
        close_grants(caller=caller, contract_ref=row.id, now=now)
    if contract.assignee.active:
        closer = {caller.agent.id} if isinstance(caller, Caller) and told == given else set()
        done = "sent back for rework" if outcome is ContractOutcome.REWORK else outcome
        send_system_mail(
            organisation_id=row.organisation_id,
            recipient=contract.assignee,
            subject=f"{outcome}: {row.title}",
            body=f"{contract.issuer.handle}'s contract {row.id} is {done}: {one_line(told)}",
            quotes=store.writers_of_terms(row.id) | closer,
            now=now,
            contract_ref=row.id,
        )
