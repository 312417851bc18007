"""The contract that a session works under: found for a call, and bound to a new session."""

from __future__ import annotations

from django.db.models import Q

from contracts import rules, store
from contracts.authority import MOST_NAMED, choose_contract, opens_rights
from contracts.models import Contract
from contracts.rules import ContractFacts
from contracts.vocabulary import ContractState
from core.database import needs_transaction
from core.decision import Code, Denied, Deny, refuse
from orgchart.policy.vocabulary import ToolMode
from toolbox.caller import Caller
from toolbox.modes import is_closed_by_person

OPENS_RIGHTS = ~Q(mode=ToolMode.CHAT_SAFE) | ~Q(workspace_scope=[]) | ~Q(assigned_branch="")
"""As `opens_rights` decides."""


def find_working_contract(caller: Caller) -> ContractFacts | Deny | None:
    """The contract that this call works under; None without one; a Deny where it has to choose."""
    mine = Contract.objects.filter(
        OPENS_RIGHTS, assignee_id=caller.agent.id, state=ContractState.IN_PROGRESS
    ).defer("body")
    bound = caller.session.contract
    rows = list(mine.filter(id=bound)) if bound else []
    rows = rows or list(mine.order_by("-id")[: MOST_NAMED + 1])
    return choose_contract([store.contract_facts(row, caller.policy) for row in rows], bound)


def require_working_contract(caller: Caller) -> ContractFacts | None:
    """The contract that this call works under, if any. Raises Denied CONTRACT_REQUIRED."""
    found = find_working_contract(caller)
    if isinstance(found, Deny):
        raise Denied(found)
    return found


@needs_transaction
def session_of_contract(caller: Caller, contract_id: str) -> ToolMode:
    """The mode of a session that the caller opens for a contract of its own in progress: the
    contract's, unless a person closed it (Spec: modes 13).

    The contract is locked: it stays in progress until the session is there. Raises Denied
    NOT_FOUND, NOT_YOURS, INVALID_TRANSITION, INVALID_PARAMS for one that opens no rights.
    """
    _, contract = store.lock_contract(contract_id, caller)
    caller.require(rules.can_work_on(contract, caller.agent))
    if not opens_rights(contract):
        raise refuse(
            Code.INVALID_PARAMS,
            f"contract: {contract.id} opens no mode, folders or branch",
            "work on it in any session; leave contract out",
            rule="a session works under a contract that opens rights",
            contract="opens no rights",
        )
    is_closed = is_closed_by_person(contract.id, caller)
    return ToolMode.CHAT_SAFE if is_closed else contract.mode
