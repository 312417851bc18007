"""Who may issue a contract, see it, move it, judge it: pure, over the compiled policy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from contracts.judging import (
    SubmissionFacts,
    Terms,
    can_judge_submission,
    code_of,
    is_judge,
    is_judge_of,
    is_own_work,
    needs_verdict,
)
from contracts.vocabulary import (
    MACHINE,
    ContractKind,
    ContractMove,
    ContractOutcome,
    ContractState,
    ReportKind,
    VerdictFinding,
)
from core.blank import is_blank
from core.decision import Allow, Code, Decision, Deny, deny, stale
from documents.rules import is_denied_to, reports_folder
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Board, Party
from orgchart.policy.readership import can_read_text, can_tell

SUBMIT_REPORT = "submit_report"
BEFORE_THE_VERSION = (Code.NOT_FOUND, Code.NOT_YOURS, Code.INVALID_PARAMS)
"""What is refused whatever version was expected: the version of others' work is not told."""
YOURS = "list_contracts shows the contracts that you issued and those assigned to you"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractFacts(Terms):
    """A contract as rules see it; `department` is where its reports are filed, `submission` its
    latest one, where a decision needs it.
    """

    id: str
    kind: ContractKind
    state: ContractState
    version: int
    department: str
    submission: SubmissionFacts | None = None
    environment: str = ""
    artifact: str = ""
    expires_at: datetime | None = None
    used_at: datetime | None = None


def can_see(
    contract: ContractFacts, who: Agent, policy: Policy, *, judged: bool = False
) -> Decision:
    """Decide whether an agent may read a contract: its parties, the agents above its assignee, and
    QA while the work is in review or once it has `judged` it.
    """
    if who.id in (contract.assignee.id, contract.issuer.id):
        return Allow("a contract is read by its parties")
    if policy.is_above(who, contract.assignee):
        return Allow("the agents above read the contracts of those below")
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
    if isinstance(decision, Deny) and decision.code in BEFORE_THE_VERSION:
        return decision
    if expected_version is None or expected_version == contract.version:
        return decision
    return stale_contract(contract.id, expected_version, contract.version)


def stale_contract(contract_id: str, expected: int, current: int) -> Deny:
    """The refusal of a change to a version that is no longer the present one."""
    return stale(
        contract_id,
        "read it again (list_contracts) and repeat with the current version",
        expected=expected,
        current=current,
    )


def can_move(contract: ContractFacts, move: ContractMove, who: Party) -> Decision:
    """Decide whether the contract's state allows this transition, for a party of the contract
    (Spec: contracts 2).
    """
    step = MACHINE.steps[move]
    if contract.state in step.sources:
        return Allow(f"{contract.state} -> {step.target}")
    allowed = _next_states(contract)
    onward = f"from here it can become {', '.join(allowed)}" if allowed else "that state is final"
    if contract.state == step.target:
        problem = f"{contract.id} is {contract.state} already; {onward}"
    elif step.target in allowed:  # by another move
        only = " or ".join(step.sources)
        problem = (
            f"{contract.id} is {contract.state}; only a {only} contract takes {move}; {onward}"
        )
    else:
        problem = f"{contract.id} is {contract.state} and cannot become {step.target}; {onward}"
    return deny(
        Code.INVALID_TRANSITION,
        problem,
        _next_step(contract, who),
        rule="contract states (spec: contracts 2)",
        state=str(contract.state),
        allowed=allowed,
    )


def _next_states(contract: ContractFacts) -> list[str]:
    return [str(MACHINE.steps[name].target) for name in MACHINE.steps_from(contract.state)]


def _next_step(contract: ContractFacts, who: Party) -> str:
    """What this party can do now: its own move, or to wait for the other's (Spec: wire 39)."""
    mine = who.id == contract.assignee.id
    assignee, issuer = contract.assignee.handle, contract.issuer.handle
    match contract.state:
        case ContractState.PENDING:
            return "accept it first" if mine else f"wait until {assignee} accepts it"
        case ContractState.IN_PROGRESS:
            done = "submit the work with a completion report when it is done"
            return done if mine else f"wait until {assignee} submits the work"
        case ContractState.REVIEW:
            return f"wait until {issuer} closes it"
        case ContractState.PASSED | ContractState.FAILED | ContractState.CANCELLED:
            if mine:
                return (
                    "nothing is left to do: a follow-up would be a new contract that names this "
                    "one in supersedes"
                )
            return "issue a follow-up that names this one in supersedes"


def can_accept(contract: ContractFacts, who: Agent) -> Decision:
    """Decide whether an agent may accept a contract: its assignee, while it is pending."""
    if contract.assignee.id != who.id:
        return _not_yours(f"only {contract.assignee.handle} can accept {contract.id}")
    return can_move(contract, ContractMove.ACCEPT, who)


def can_work_on(contract: ContractFacts, who: Agent) -> Decision:
    """Decide whether an agent may open a session for a contract: its assignee, in progress."""
    if contract.assignee.id != who.id:
        return _not_yours(f"only {contract.assignee.handle} works on {contract.id}")
    if contract.state is ContractState.IN_PROGRESS:
        return Allow("a session for a contract in progress (spec: contracts 33)")
    return deny(
        Code.INVALID_TRANSITION,
        f"{contract.id} is {contract.state}, not in_progress",
        _next_step(contract, who),
        rule="a session works under a contract in progress",
        state=str(contract.state),
        allowed=_next_states(contract),
    )


def can_submit(contract: ContractFacts, who: Agent, kind: ReportKind) -> Decision:
    """Decide whether an agent may report on a contract: its assignee, while it works on it."""
    if contract.assignee.id != who.id:
        return _not_yours(f"only {contract.assignee.handle} reports on {contract.id}")
    if kind is ReportKind.PROGRESS and contract.state is ContractState.IN_PROGRESS:
        return Allow("progress of work in progress")
    return can_move(contract, ContractMove.SUBMIT, who)


def can_submit_by_mail(contract: ContractFacts, who: Agent, to: str, policy: Policy) -> Decision:
    """Decide whether a mail submits the work: of an assignee without submit_report, to the reader
    of its reports (Spec: contracts 22).
    """
    submitting = can_submit(contract, who, ReportKind.COMPLETION)
    if isinstance(submitting, Deny):
        return submitting
    role = policy.role_of(who)
    if SUBMIT_REPORT in role.tools - role.denied_tools:
        return deny(
            Code.INVALID_PARAMS,
            "submits: your role submits with submit_report",
            "use submit_report with kind completion",
            rule="roles without submit_report submit by mail",
            submits="use submit_report",
        )
    reader = reader_of(contract, who, policy)
    if to != reader.handle:
        return deny(
            Code.INVALID_PARAMS,
            f"to: the report that submits {contract.id} goes to {reader.handle}",
            f"send it to {reader.handle}",
            rule="a submission goes to the contract's issuer",
            to=f"must be {reader.handle}",
        )
    return submitting


def can_judge(contract: ContractFacts, who: Agent, policy: Policy) -> Decision:
    """Decide whether an agent gives a verdict: QA of the department, once on each submission of
    others' work (Spec: contracts 26, 28).
    """
    if contract.assignee.id == who.id or (is_judge(who, policy) and is_own_work(contract, who)):
        return _not_yours("QA does not judge work that it does or is responsible for")
    if not is_judge_of(contract, who, policy):
        return not_found()
    return can_judge_submission(contract.id, contract.state, contract.submission, who)


def can_close(
    contract: ContractFacts, who: Party, outcome: ContractOutcome, reason: str, policy: Policy
) -> Decision:
    """Decide whether a contract may be closed or sent back: by its issuer; the Board may cancel any
    contract.
    """
    cancelled_by_board = isinstance(who, Board) and outcome is ContractOutcome.CANCELLED
    if contract.issuer.id != who.id and not cancelled_by_board:
        return _not_yours(f"only {contract.issuer.handle} closes {contract.id}")
    if is_blank(reason):
        return deny(
            Code.INVALID_PARAMS,
            "reason: a contract is closed or sent back with a reason",
            "say why, in a sentence",
            rule="a contract is closed with a reason",
            reason="must not be empty",
        )
    moved = can_move(contract, outcome.move, who)
    if isinstance(moved, Deny) or outcome is not ContractOutcome.PASSED:
        return moved
    finding = contract.submission.finding if contract.submission else None
    if needs_verdict(contract, policy) and finding is not VerdictFinding.PASS:
        return _pass_missing(contract, finding)
    return moved


def reason_told(contract: ContractFacts, who: Party, reason: str, policy: Policy) -> str:
    """The reason that the assignee reads: the given one, where its writer may write to the assignee
    (Spec: mail 43).
    """
    if isinstance(can_tell(policy, who, contract.assignee), Allow):
        return reason
    return f"{who.handle} may not write to {contract.assignee.handle}; the ledger has its reason"


def can_read_reason(contract: ContractFacts, who: Agent, policy: Policy) -> Decision:
    """Decide whether an agent reads why the issuer closed a contract (Spec: mail 43).

    The parties do: what is kept is the reason that the assignee may be told.
    """
    if who.id in (contract.assignee.id, contract.issuer.id):
        return Allow("a contract is read by its parties")
    return can_tell(policy, contract.issuer, who)


def can_read_evidence(
    contract: ContractFacts, judge: Agent, who: Agent, policy: Policy
) -> Decision:
    """Decide whether an agent that sees a contract reads the words of a verdict.

    Its parties do, those above the assignee, and who reads the judge's text (Spec: contracts 53).
    """
    is_party = who.id in (contract.assignee.id, contract.issuer.id)
    if is_party or policy.is_above(who, contract.assignee):
        return Allow("a verdict is read by those who read the work")
    return can_read_text(policy, judge, who)


def _pass_missing(contract: ContractFacts, finding: VerdictFinding | None) -> Deny:
    found = f"QA's verdict on it is {finding}" if finding else "QA has given no verdict on it"
    return deny(
        Code.APPROVAL_REQUIRED,
        f"{contract.id} is code work ({code_of(contract)}) and this submission needs a PASS of QA "
        f"before it can pass; {found}",
        "send it back with close_contract (outcome rework), or close it as failed"
        if finding
        else "ask a QA agent of the department for its verdict, send the work back with "
        "close_contract (outcome rework), or close it as failed",
        rule="code work needs a PASS of QA on its submission (spec: contracts 25)",
        finding=str(finding) if finding else None,
    )


def _not_yours(message: str) -> Deny:
    return deny(Code.NOT_YOURS, message, YOURS, rule="who changes a contract (spec: contracts 12)")


def reader_of(contract: ContractFacts, sender: Agent, policy: Policy) -> Party:
    """Who reads an agent's report or verdict: the issuer, where the chain of command lets the
    sender reach it or the superior is denied the folder of the report; else the sender's superior
    (Spec: mail 15, mail 42).
    """
    issuer = contract.issuer
    if isinstance(issuer, Board):
        return issuer
    superior = policy.superior_of(sender)
    folder = reports_folder(contract.department)
    reachable = issuer.handle in sender.managers or policy.rule_between(sender, issuer) is not None
    kept_from_superior = isinstance(superior, Agent) and is_denied_to(folder, superior, policy)
    return issuer if issuer.active and (reachable or kept_from_superior) else superior
