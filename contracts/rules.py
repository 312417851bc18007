"""Who may issue a contract, see it, move it, judge it: pure, over the compiled policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from contracts.vocabulary import (
    MACHINE,
    ContractKind,
    ContractOutcome,
    ContractState,
    Move,
    ReportKind,
    VerdictFinding,
)
from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Board, Party
from orgchart.policy.vocabulary import BOARD, Kind

WRITE_VERDICT = "write_verdict"
SUBMIT_REPORT = "submit_report"
YOURS = "list_contracts shows the contracts that you issued and those assigned to you"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractFacts:
    """A contract as rules see it; `finding` is that of the latest verdict on the work."""

    id: str
    kind: ContractKind
    state: ContractState
    version: int
    issuer: Party
    assignee: Agent
    workspace_scope: tuple[str, ...] = ()
    finding: VerdictFinding | None = None
    environment: str = ""
    artifact: str = ""
    expires_at: datetime | None = None
    used_at: datetime | None = None


def _has(agent: Agent, tool: str, policy: Policy) -> bool:
    role = policy.role_of(agent)
    return tool in role.tools - role.denied_tools


def is_judge(agent: Agent, policy: Policy) -> bool:
    """Whether the agent's role gives verdicts (seed 000 §1.9)."""
    return _has(agent, WRITE_VERDICT, policy)


def is_judge_of(contract: ContractFacts, agent: Agent, policy: Policy) -> bool:
    """Whether the agent gives verdicts in the department that the contract touches code of.

    The department is that of the judge's managers: one of them issued the contract, works on it,
    or manages who works on it.
    """
    if not contract.workspace_scope or not is_judge(agent, policy):
        return False
    parties = {contract.issuer.handle, contract.assignee.handle, *contract.assignee.managers}
    return bool((parties - {BOARD}) & set(agent.managers))


def needs_verdict(contract: ContractFacts, policy: Policy) -> bool:
    """Whether QA must pass the work first: a worker touches code (seed 000 §1.3).

    QA itself writes no source and judges no work of its own; managers and the top agent touch no
    code, and what they delegate has contracts and verdicts of its own.
    """
    assignee = contract.assignee
    worker = policy.role_of(assignee).kind is Kind.WORKER
    return bool(contract.workspace_scope) and worker and not is_judge(assignee, policy)


def awaits_report(contract: ContractFacts, policy: Policy) -> bool:
    """Whether the contract is in progress and its assignee reports by mail (seed 000 §4.3).

    Managers and the top agent have no submit_report (§2.1): the contract moves to review when its
    issuer decides on it.
    """
    return contract.state is ContractState.IN_PROGRESS and not _has(
        contract.assignee, SUBMIT_REPORT, policy
    )


def can_see(
    contract: ContractFacts, who: Agent, policy: Policy, *, judged: bool = False
) -> Decision:
    """Decide whether an agent may read a contract: its parties, managers of its assignee, and QA
    while the work is in review or once it has `judged` it.
    """
    if who.id in (contract.assignee.id, contract.issuer.id):
        return Allow("a contract is read by its parties")
    if who.handle in contract.assignee.managers:
        return Allow("a manager reads the contracts of its own workers")
    if is_judge_of(contract, who, policy) and (contract.state is ContractState.REVIEW or judged):
        return Allow("QA reads what it judges")
    return not_found()


def not_found() -> Deny:
    """The same answer for a contract that does not exist and one that the caller may not see."""
    return deny(
        Code.NOT_FOUND, "you have no such contract", YOURS, rule="a contract is read by its parties"
    )


def at_version(
    contract: ContractFacts, expected_version: int | None, decision: Decision
) -> Decision:
    """The decision, unless the caller expected another version than the present one.

    Ownership is checked before the version, and the version before the state.
    """
    if isinstance(decision, Deny) and decision.code in (Code.NOT_YOURS, Code.INVALID_PARAMS):
        return decision
    if expected_version is None or expected_version == contract.version:
        return decision
    return stale(contract.id, expected_version, contract.version)


def stale(contract_id: str, expected: int, current: int) -> Deny:
    """The refusal of a change to a version that is no longer the present one."""
    return deny(
        Code.VERSION_MISMATCH,
        f"{contract_id} changed after you read it: expected version {expected}, current {current}",
        "read it again (list_contracts) and repeat with the current version",
        rule="expected_version",
        expected=expected,
        current=current,
    )


def can_move(contract: ContractFacts, move: Move) -> Decision:
    """Decide whether the contract's state allows this transition (seed 000 §6.2)."""
    target = MACHINE.steps[move].target
    if contract.state in MACHINE.steps[move].sources:
        return Allow(f"{contract.state} -> {target}")
    allowed = _next_states(contract)
    return deny(
        Code.INVALID_TRANSITION,
        f"{contract.id} is {contract.state} "
        + ("already; " if contract.state == target else f"and cannot become {target}; ")
        + (f"from here it can become {', '.join(allowed)}" if allowed else "that state is final"),
        _next_step(contract),
        rule="contract states (seed 000 §6.2)",
        state=str(contract.state),
        allowed=allowed,
    )


def _next_states(contract: ContractFacts) -> list[str]:
    return [str(MACHINE.steps[name].target) for name in MACHINE.steps_from(contract.state)]


def _next_step(contract: ContractFacts) -> str:
    match contract.state:
        case ContractState.PENDING:
            return f"{contract.assignee.handle} accepts it first, with accept_contract"
        case ContractState.IN_PROGRESS:
            return f"{contract.assignee.handle} finishes it first, with submit_report (completion)"
        case ContractState.REVIEW:
            return f"{contract.issuer.handle} closes it, with close_contract"
        case ContractState.PASSED | ContractState.FAILED | ContractState.CANCELLED:
            return "a follow-up is a new contract that names this one in supersedes"


def can_accept(contract: ContractFacts, who: Agent) -> Decision:
    """Decide whether an agent may accept a contract: its assignee, while it is pending."""
    if contract.assignee.id != who.id:
        return _not_yours(contract, f"only {contract.assignee.handle} can accept {contract.id}")
    return can_move(contract, Move.ACCEPT)


def can_submit(contract: ContractFacts, who: Agent, kind: ReportKind) -> Decision:
    """Decide whether an agent may report on a contract: its assignee, while it works on it."""
    if contract.assignee.id != who.id:
        return _not_yours(contract, f"only {contract.assignee.handle} reports on {contract.id}")
    if kind is ReportKind.PROGRESS and contract.state is ContractState.IN_PROGRESS:
        return Allow("progress of work in progress")
    return can_move(contract, Move.SUBMIT)


def can_judge(contract: ContractFacts, who: Agent, policy: Policy) -> Decision:
    """Decide whether an agent gives a verdict: QA of the department, on others' work in review."""
    if contract.assignee.id == who.id:
        return _not_yours(contract, "QA does not judge its own work")
    if not is_judge_of(contract, who, policy):
        return not_found()
    if contract.state is not ContractState.REVIEW:
        return deny(
            Code.INVALID_TRANSITION,
            f"{contract.id} is {contract.state}; a verdict is given in review",
            _next_step(contract),
            rule="a verdict is given in review",
            state=str(contract.state),
            allowed=_next_states(contract),
        )
    return Allow("QA judges finished work (seed 000 §1.9)")


def can_close(
    contract: ContractFacts, who: Party, outcome: ContractOutcome, reason: str, policy: Policy
) -> Decision:
    """Decide whether a contract may be closed: by its issuer; the Board may cancel any contract."""
    cancelled_by_board = isinstance(who, Board) and outcome is ContractOutcome.CANCELLED
    if contract.issuer.id != who.id and not cancelled_by_board:
        return _not_yours(contract, f"only {contract.issuer.handle} closes {contract.id}")
    if not reason.strip():
        return deny(
            Code.INVALID_PARAMS,
            "reason: a contract is closed with a reason",
            "say why, in a sentence",
            rule="a contract is closed with a reason",
            reason="must not be empty",
        )
    if outcome is not ContractOutcome.CANCELLED and awaits_report(contract, policy):
        contract = replace(contract, state=ContractState.REVIEW)
    moved = can_move(contract, outcome.move)
    if isinstance(moved, Deny) or outcome is not ContractOutcome.PASSED:
        return moved
    if needs_verdict(contract, policy) and contract.finding is not VerdictFinding.PASS:
        return _needs_pass(contract)
    return moved


def _needs_pass(contract: ContractFacts) -> Deny:
    found = (
        f"QA's latest verdict on it is {contract.finding}"
        if contract.finding
        else ("QA has given no verdict on it")
    )
    return deny(
        Code.APPROVAL_REQUIRED,
        f"{contract.id} touches code ({', '.join(contract.workspace_scope)[:200]}) and needs a "
        f"PASS of QA before it can pass; {found}",
        "ask a QA agent of the department for its write_verdict (PASS), or close it as failed",
        rule="code needs a PASS of QA (seed 000 §1.3)",
        finding=str(contract.finding) if contract.finding else None,
    )


def _not_yours(contract: ContractFacts, message: str) -> Deny:
    return deny(
        Code.NOT_YOURS, message, YOURS, rule="who changes a contract (decisions.md § Contracts)"
    )


def reader_of(issuer: Party, sender: Agent, policy: Policy) -> Party:
    """Who reads an agent's report or verdict: the issuer, where the chain of command lets the
    sender reach it, else the sender's superior (C-03).
    """
    if isinstance(issuer, Board):
        return issuer
    reachable = issuer.handle in sender.managers or policy.rule_between(sender, issuer) is not None
    if issuer.active and reachable:
        return issuer
    return policy.superior_of(sender)
