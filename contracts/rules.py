"""Who may issue a contract, see it, move it, judge it: pure, over the compiled policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from contracts.vocabulary import (
    MACHINE,
    ContractKind,
    Finding,
    Move,
    Outcome,
    ReportKind,
    State,
)
from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD, Kind

JUDGING = "write_verdict"
REPORTING = "submit_report"
YOURS = "list_contracts shows the contracts that you issued and those assigned to you"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A contract as rules see it. `issuer` None: the Board.

    `finding` is the latest verdict on the work handed in; None where there is none.
    """

    id: str
    kind: ContractKind
    state: State
    version: int
    issuer: Agent | None
    assignee: Agent
    workspace_scope: tuple[str, ...] = ()
    finding: Finding | None = None
    environment: str = ""
    artifact: str = ""
    expires_at: datetime | None = None
    used_at: datetime | None = None

    @property
    def issuer_name(self) -> str:
        """Who issued it, as people write it."""
        return self.issuer.handle if self.issuer else BOARD


def _has(agent: Agent, tool: str, policy: Policy) -> bool:
    role = policy.role_of(agent)
    return tool in role.tools - role.denied_tools


def is_judge(agent: Agent, policy: Policy) -> bool:
    """Whether the agent's role gives verdicts (seed 000 §1.9)."""
    return _has(agent, JUDGING, policy)


def judges(contract: Facts, agent: Agent, policy: Policy) -> bool:
    """Whether the agent gives verdicts in the department that the contract touches code of.

    The department is that of the judge's managers: one of them issued the contract, works on it,
    or manages who works on it.
    """
    if not contract.workspace_scope or not is_judge(agent, policy):
        return False
    parties = {contract.issuer_name, contract.assignee.handle, *contract.assignee.managers}
    return bool((parties - {BOARD}) & set(agent.managers))


def needs_verdict(contract: Facts, policy: Policy) -> bool:
    """Whether QA must pass the work first: a worker touches code (seed 000 §1.3).

    QA itself writes no source and judges no work of its own; managers and the top agent touch no
    code, and what they delegate has contracts and verdicts of its own.
    """
    assignee = contract.assignee
    worker = policy.role_of(assignee).kind is Kind.WORKER
    return bool(contract.workspace_scope) and worker and not is_judge(assignee, policy)


def awaits_report(contract: Facts, policy: Policy) -> bool:
    """Whether the contract is in progress with somebody who reports by mail (seed 000 §4.3).

    Managers and the top agent have no submit_report (§2.1): their issuer takes the work into
    review when it decides on it.
    """
    return contract.state is State.IN_PROGRESS and not _has(contract.assignee, REPORTING, policy)


def can_see(contract: Facts, who: Agent, policy: Policy, *, judged: bool = False) -> Decision:
    """Decide whether an agent may read a contract: its parties, who manages its assignee, and QA
    while the work is in review or once it has `judged` it.
    """
    if contract.assignee.id == who.id or (contract.issuer and contract.issuer.id == who.id):
        return Allow("a contract is read by its parties")
    if who.handle in contract.assignee.managers:
        return Allow("a manager reads the contracts of its own workers")
    if judges(contract, who, policy) and (contract.state is State.REVIEW or judged):
        return Allow("QA reads what it judges")
    return not_found()


def not_found() -> Deny:
    """One answer for what does not exist, is another organisation's, or is not the caller's."""
    return deny(
        Code.NOT_FOUND, "you have no such contract", YOURS, rule="a contract is read by its parties"
    )


def at_version(contract: Facts, expected_version: int | None, decision: Decision) -> Decision:
    """The decision, unless a change names another version than the present one.

    Whose it is comes first, then the version, then the state: a stale version is told as such.
    """
    if isinstance(decision, Deny) and decision.code in (Code.NOT_YOURS, Code.INVALID_PARAMS):
        return decision
    if expected_version is None or expected_version == contract.version:
        return decision
    return stale(contract.id, expected_version, contract.version)


def stale(contract_id: str, expected: int, current: int) -> Deny:
    """A change that was made from a version that is no more."""
    return deny(
        Code.VERSION_MISMATCH,
        f"{contract_id} was changed meanwhile: expected version {expected}, current {current}",
        "look at it again (list_contracts) and repeat with the current version",
        rule="expected_version",
        expected=expected,
        current=current,
    )


def can_move(contract: Facts, move: Move) -> Decision:
    """Decide whether the contract's state has this move (seed 000 §6.2)."""
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


def _next_states(contract: Facts) -> list[str]:
    return [str(MACHINE.steps[name].target) for name in MACHINE.steps_from(contract.state)]


def _next_step(contract: Facts) -> str:
    match contract.state:
        case State.PENDING:
            return f"{contract.assignee.handle} accepts it first, with accept_contract"
        case State.IN_PROGRESS:
            return f"{contract.assignee.handle} finishes it first, with submit_report (completion)"
        case State.REVIEW:
            return f"{contract.issuer_name} closes it, with close_contract"
        case State.PASSED | State.FAILED | State.CANCELLED:
            return "a follow-up is a new contract that names this one in supersedes"


def can_accept(contract: Facts, who: Agent) -> Decision:
    """Decide whether an agent may take up a contract: its assignee, once, while it is pending."""
    if contract.assignee.id != who.id:
        return _not_yours(contract, f"only {contract.assignee.handle} can accept {contract.id}")
    return can_move(contract, Move.ACCEPT)


def can_submit(contract: Facts, who: Agent, kind: ReportKind) -> Decision:
    """Decide whether an agent may report on a contract: its assignee, while it works on it."""
    if contract.assignee.id != who.id:
        return _not_yours(contract, f"only {contract.assignee.handle} reports on {contract.id}")
    if kind is ReportKind.PROGRESS and contract.state is State.IN_PROGRESS:
        return Allow("progress of work in progress")
    return can_move(contract, Move.SUBMIT)


def can_judge(contract: Facts, who: Agent, policy: Policy) -> Decision:
    """Decide whether an agent gives a verdict: QA of the department, on others' work in review."""
    if contract.assignee.id == who.id:
        return _not_yours(contract, "nobody judges work of its own")
    if not judges(contract, who, policy):
        return not_found()
    if contract.state is not State.REVIEW:
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
    contract: Facts, who: Agent | None, outcome: Outcome, reason: str, policy: Policy
) -> Decision:
    """Decide whether a contract may be closed. `who` None: a person of the Board, who cancels
    any contract and decides on those of the Board.
    """
    issued = contract.issuer.id if contract.issuer else None
    if issued != (who.id if who else None) and not (who is None and outcome is Outcome.CANCELLED):
        return _not_yours(contract, f"only {contract.issuer_name} closes {contract.id}")
    if not reason.strip():
        return deny(
            Code.INVALID_PARAMS,
            "reason: a contract is closed with a reason",
            "say why, in a sentence",
            rule="a contract is closed with a reason",
            reason="must not be empty",
        )
    if outcome is not Outcome.CANCELLED and awaits_report(contract, policy):
        contract = replace(contract, state=State.REVIEW)
    moved = can_move(contract, outcome.move)
    if isinstance(moved, Deny) or outcome is not Outcome.PASSED:
        return moved
    if needs_verdict(contract, policy) and contract.finding is not Finding.PASS:
        return _needs_pass(contract)
    return moved


def _needs_pass(contract: Facts) -> Deny:
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
        rule="nobody goes around QA (seed 000 §1.3)",
        finding=str(contract.finding) if contract.finding else None,
    )


def can_use_approval(
    contract: Facts, who: Agent, *, environment: str, artifact: str, now: datetime
) -> Decision:
    """Decide whether an approval covers this deployment: its assignee's, for exactly this
    environment and artefact, not expired, not used, not closed (seed 000 §1.8).
    """
    problem = ""
    if contract.kind is not ContractKind.DEPLOYMENT_APPROVAL or contract.assignee.id != who.id:
        problem = "is no deployment approval of yours"
    elif contract.environment != environment or contract.artifact != artifact:
        problem = "is for another environment or artefact"
    elif contract.state not in (State.PENDING, State.IN_PROGRESS):
        problem = f"is {contract.state}"
    elif contract.used_at is not None:
        problem = "was used"
    elif contract.expires_at is None or contract.expires_at <= now:
        problem = "has expired"
    if not problem:
        return Allow("deployment approval (seed 000 §1.8)")
    return needs_approval(who, environment, artifact, f"{contract.id} {problem}")


def needs_approval(who: Agent, environment: str, artifact: str, problem: str) -> Deny:
    """A deployment that no approval covers."""
    return deny(
        Code.APPROVAL_REQUIRED,
        f"deploying {artifact[:80]} to {environment[:63]} needs a deployment approval: {problem}",
        f"ask {who.superior} for approve_deployment of exactly this environment and artefact",
        rule="no deployment without approval (seed 000 §1.8)",
    )


def _not_yours(contract: Facts, message: str) -> Deny:
    return deny(
        Code.NOT_YOURS, message, YOURS, rule="who moves a contract (decisions.md § Contracts)"
    )


def reader_of(issuer: Agent | None, sender: Agent, policy: Policy) -> Agent | None:
    """Who reads an agent's report or verdict: the issuer, where the chain of command lets the
    sender reach it, else the sender's superior; None is the Board (C-03).
    """
    if issuer is None:
        return None
    reachable = issuer.handle in sender.managers or policy.rule_between(sender, issuer) is not None
    if issuer.active and reachable:
        return issuer
    return policy.agents.get(sender.superior)
