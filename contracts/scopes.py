"""The folders that an agent's contracts open to it."""

from __future__ import annotations

from contracts import judging
from contracts.models import Contract
from contracts.session_contract import find_working_contract
from contracts.store import contract_facts
from contracts.vocabulary import ContractState
from core.decision import Deny
from toolbox.caller import Caller


def work_scopes(caller: Caller) -> tuple[str, ...]:
    """The folders of the one contract that the caller's session works under, if it has chosen one.

    For QA also those of the work that it may judge now, to read only (Spec: contracts 39).
    """
    found = find_working_contract(caller)
    scopes = () if found is None or isinstance(found, Deny) else tuple(found.workspace_scope)
    if judging.is_judge(caller.agent, caller.policy):
        scopes += _scopes_to_judge(caller)
    return tuple(dict.fromkeys(scopes))


def _scopes_to_judge(caller: Caller) -> tuple[str, ...]:
    rows = Contract.objects.filter(
        organisation_id=caller.organisation_id, state=ContractState.REVIEW
    )
    return tuple(
        scope
        for row in rows.exclude(workspace_scope=[]).defer("body")
        if judging.is_judge_of(contract_facts(row, caller.policy), caller.agent, caller.policy)
        for scope in row.workspace_scope
    )
