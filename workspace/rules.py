"""Which branches agents may change; pure."""

from __future__ import annotations

from contracts.branches import NONE_TAKEN, TakenNames, branch_problem
from core.decision import Allow, Code, Decision, deny


def can_use_branch(name: str, assigned: str, taken: TakenNames = NONE_TAKEN) -> Decision:
    """Decide whether git may work on this branch: the contract's own, in its one spelling.

    Spec: hands 1.

    `assigned` is the branch of the one contract that the agent works under, or ''; `taken` are the
    branches in whose way it may be.
    """
    problem = branch_problem(name, taken)
    if problem:
        return _branch_denied(f"{name[:200]!r}: {problem}", assigned, is_taken=name == assigned)
    if not assigned or name != assigned:
        return _branch_denied(f"{name} is not the branch of the contract you work under", assigned)
    return Allow("assigned_branch (spec: hands 1)")


def can_commit(assigned: str) -> Decision:
    """Decide whether git may commit at all: only on the branch that a contract assigns.

    Spec: hands 1.
    """
    if assigned:
        return Allow("assigned_branch (spec: hands 1)")
    return _branch_denied("the contract you work under assigns no branch", assigned)


def _branch_denied(problem: str, assigned: str, *, is_taken: bool = False) -> Decision:
    return deny(
        Code.BRANCH_DENIED,
        f"the branch is refused: {problem}",
        "ask your superior for a contract with a branch of its own"
        if is_taken
        else f"work on {assigned}"
        if assigned
        else "accept a contract that assigns a branch (list_contracts shows yours)",
        rule="git works on the contract's branch only (spec: hands 1)",
        assigned=[assigned] if assigned else [],
    )
