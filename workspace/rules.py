"""Which branches agents may change; pure."""

from __future__ import annotations

from contracts.branches import branch_problem
from core.decision import Allow, Code, Decision, deny


def can_use_branch(name: str, assigned: str) -> Decision:
    """Decide whether git may work on this branch: the contract's own, in its one spelling.

    Spec: hands 1.

    `assigned` is the branch of the one contract that the agent works under, or ''.
    """
    problem = branch_problem(name)
    if problem:
        return _branch_denied(f"{name[:200]!r}: {problem}", assigned)
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


def _branch_denied(problem: str, assigned: str) -> Decision:
    return deny(
        Code.BRANCH_DENIED,
        f"the branch is refused: {problem}",
        f"work on {assigned}"
        if assigned
        else "accept a contract that assigns a branch (list_contracts shows yours)",
        rule="git works on the contract's branch only (spec: hands 1)",
        assigned=[assigned] if assigned else [],
    )
