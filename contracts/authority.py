"""Which one contract a session works under: rights of two are never combined; pure."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.rules import ContractFacts
from core.decision import Code, Deny, deny
from orgchart.policy.vocabulary import ToolMode

MOST_NAMED = 20
"""Of the contracts that an agent has to choose from, the newest so many are named."""


def opens_rights(contract: ContractFacts) -> bool:
    """Whether a contract in progress gives its assignee a mode, folders or a branch."""
    return (
        contract.mode is not ToolMode.CHAT_SAFE
        or bool(contract.workspace_scope)
        or bool(contract.assigned_branch)
    )


def choose_contract(held: Sequence[ContractFacts], bound: str) -> ContractFacts | Deny | None:
    """The contract whose mode, folders and branch a call may use (Spec: contracts 33).

    `held` are the agent's contracts in progress that open rights: the one that the session is bound
    to, which applies, or the newest ones. In a session bound to none the only one there is applies;
    of several the agent chooses.
    """
    for contract in held:
        if contract.id == bound:
            return contract
    if len(held) > 1:
        named = ", ".join(contract.id for contract in held[:5])
        number = len(held) if len(held) <= MOST_NAMED else f"{MOST_NAMED}+"
        return deny(
            Code.CONTRACT_REQUIRED,
            f"{number} contracts of yours are in progress ({named}), and this session works "
            "under none of them",
            f'open a session for one: POST /api/v1/sessions with {{"contract": "{held[0].id}"}}, '
            "and name it in X-Nexus-Session",
            rule="rights of two contracts are never combined (spec: contracts 33)",
            contracts=[contract.id for contract in held[:MOST_NAMED]],
        )
    return held[0] if held else None
