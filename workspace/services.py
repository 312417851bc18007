"""What every tool for files and git checks first: its paths, its branch, its contract."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from contracts.rules import ContractFacts
from contracts.session_contract import require_working_contract
from core.database import needs_transaction
from core.decision import Code, Deny, refuse
from orgchart.policy.paths import can_touch
from orgchart.policy.vocabulary import Access, ContractScope
from toolbox.caller import Caller
from toolbox.frames.stack import lock_agent
from toolbox.gate import admit
from toolbox.scopes import active_scopes
from toolbox.sessions import caller_now
from workspace import rules


def unavailable(caller: Caller, driver: str) -> NoReturn:
    """Say that every gate was passed and that this installation cannot do it (Spec: hands 15)."""
    raise refuse(
        Code.DRIVER_UNAVAILABLE,
        f"{caller.tool or 'this'} is allowed, but no {driver} is configured on this installation",
        f"go on without it and tell {caller.agent.superior}; the people who run this "
        "installation can configure it",
        rule=f"{driver} is configured",
        driver=driver,
    )


@needs_transaction
def require_still_allowed(caller: Caller, tool: str) -> Caller:
    """The caller as its next call would find it, after work that lasted (Spec: hands 30).

    A pause begins with the next call (Spec: modes 27). Raises Denied as `caller_now`, and as the
    gate where the tool was taken away or its mode closed.
    """
    lock_agent(caller)
    present = caller_now(caller)
    admit(replace(present, pause=None), tool)
    return present


def require_paths(caller: Caller, paths: Iterable[str], access: Access) -> None:
    """Every path must be in the scope of the role or of the one contract the caller works under.

    Raises Denied SCOPE_DENIED for the first that is not, CONTRACT_REQUIRED to choose a contract.
    """
    scopes = active_scopes(caller)
    for path in paths:
        touching = can_touch(
            path, access, agent=caller.agent, files=caller.role.files, contract_scope=scopes
        )
        if isinstance(touching, Deny) and caller.role.files.contract is not ContractScope.NONE:
            require_working_contract(caller)  # says so where the agent has to choose one
        caller.require(touching)


def require_branch(caller: Caller, name: str) -> ContractFacts:
    """The contract that assigns this branch to the caller: git works on no other (Spec: hands 1).

    Raises Denied BRANCH_DENIED, CONTRACT_REQUIRED.
    """
    contract = require_working_contract(caller)
    caller.require(rules.can_use_branch(name, contract.assigned_branch if contract else ""))
    assert contract is not None  # noqa: S101  without one no branch is assigned; narrows the type
    return contract


def require_commit(caller: Caller, paths: Iterable[str]) -> ContractFacts:
    """The contract whose branch and paths a commit is for; paths may be the role's, too.

    Raises Denied BRANCH_DENIED, SCOPE_DENIED, CONTRACT_REQUIRED.
    """
    contract = require_working_contract(caller)
    caller.require(rules.can_commit(contract.assigned_branch if contract else ""))
    require_paths(caller, paths, Access.WRITE)
    assert contract is not None  # noqa: S101  without one no branch is assigned; narrows the type
    return contract
