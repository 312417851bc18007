"""Which contracts are code work, who judges it and when; pure (Spec: contracts 28)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.vocabulary import ContractState, VerdictFinding
from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Party
from orgchart.policy.paths import is_within
from orgchart.policy.vocabulary import BOARD, ContractScope, ToolMode

WRITE_VERDICT = "write_verdict"
DOCUMENT_FOLDERS = ("docs/", "reports/", "backlog/")
"""The folders that hold no source; every other path of the company tree counts as source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What decides whether a contract is code work, and who is responsible for it."""

    issuer: Party
    assignee: Agent
    mode: ToolMode = ToolMode.CHAT_SAFE
    workspace_scope: Sequence[str] = ()
    assigned_branch: str = ""
    makers: frozenset[int] = frozenset()
    """Where that matters, the judges that worked on the branch before, under other contracts, or
    issued this one before they left.
    """


@dataclass(frozen=True, slots=True)
class SubmissionFacts:
    """A completion report: its id, what QA found in it, the agents that judged it, its commit."""

    report_id: int
    findings: frozenset[VerdictFinding] = frozenset()
    judges: frozenset[int] = frozenset()
    commit: str = ""

    @property
    def finding(self) -> VerdictFinding | None:
        """What QA found; a FAIL counts until the next submission, also after a PASS."""
        for finding in (VerdictFinding.FAIL, VerdictFinding.PASS):
            if finding in self.findings:
                return finding
        return None


def is_source(path: str) -> bool:
    """Whether a folder of a workspace scope reaches source: it is not wholly a document folder."""
    return not any(is_within(path, folder) for folder in DOCUMENT_FOLDERS)


def code_of(terms: Terms) -> str:
    """What makes a contract code work, in a phrase, or '' (Spec: contracts 24)."""
    if terms.mode is ToolMode.CODING:
        return "mode coding"
    if terms.assigned_branch:
        return f"the branch {terms.assigned_branch}"
    sources = [path for path in terms.workspace_scope if is_source(path)]
    return f"source ({', '.join(sources)[:200]})" if sources else ""


def is_judge(agent: Agent, policy: Policy) -> bool:
    """Whether the agent's role gives verdicts."""
    role = policy.role_of(agent)
    return WRITE_VERDICT in role.tools - role.denied_tools


def needs_verdict(terms: Terms, policy: Policy) -> bool:
    """Whether QA must pass the work: code work (Spec: contracts 25).

    The work of a judge that only reads what a contract opens, and has no branch, is no code work:
    it is the judging itself.
    """
    if is_judge(terms.assignee, policy) and not terms.assigned_branch:
        return policy.role_of(terms.assignee).files.contract is ContractScope.WRITE
    return bool(code_of(terms))


def is_judge_of(terms: Terms, agent: Agent, policy: Policy) -> bool:
    """Whether the agent gives verdicts on this contract: code work of its own department, which it
    neither does nor is responsible for.

    The department is that of the judge's managers: one of them issued the contract, works on it,
    or manages who works on it.
    """
    if not code_of(terms) or not is_judge(agent, policy) or is_own_work(terms, agent):
        return False
    parties = {terms.issuer.handle, terms.assignee.handle, *terms.assignee.managers}
    return bool((parties - {BOARD}) & set(agent.managers))


def is_own_work(terms: Terms, agent: Agent) -> bool:
    """Whether the agent made some of the work, or is responsible for it."""
    return agent.id in terms.makers or is_responsible(terms, agent)


def is_responsible(terms: Terms, agent: Agent) -> bool:
    """Whether the agent does the work, ordered it, or manages who does it."""
    return (
        agent.id in (terms.assignee.id, terms.issuer.id) or agent.handle in terms.assignee.managers
    )


def can_be_judged(terms: Terms, policy: Policy) -> Decision:
    """Decide whether a contract may be issued: code work only where a QA agent sees it."""
    if not needs_verdict(terms, policy):
        return Allow("work without code needs no verdict")
    if any(a.active and is_judge_of(terms, a, policy) for a in policy.agents.values()):
        return Allow("QA of the department judges it")
    return deny(
        Code.SCOPE_DENIED,
        f"a contract with {code_of(terms)} needs QA's verdict, and no QA agent sees the work of "
        f"{terms.assignee.handle}",
        "issue it without coding mode, branch and source folders, or let the department with QA "
        "do the code",
        rule="code work can be judged (spec: contracts 30)",
    )


def can_judge_submission(
    contract_id: str, state: ContractState, submission: SubmissionFacts | None, who: Agent
) -> Decision:
    """Decide whether there is a submission that this judge has not judged (Spec: contracts 26)."""
    if submission is None or state is not ContractState.REVIEW:
        return deny(
            Code.INVALID_TRANSITION,
            f"{contract_id} is {state}; a verdict is given on a submission in review",
            "wait until its assignee submits it; list_contracts shows its state",
            rule="a verdict is given in review",
            state=str(state),
            allowed=[],
        )
    if who.id in submission.judges:
        return deny(
            Code.INVALID_TRANSITION,
            f"you judged this submission of {contract_id} already",
            "leave it to its issuer: sent back with close_contract (rework), it comes as a new "
            "submission",
            rule="one verdict of a judge on a submission (spec: contracts 26)",
            state=str(state),
            allowed=[],
        )
    return Allow("QA judges finished work (spec: contracts 28)")


def submission_of(
    report_id: int, verdicts: Iterable[tuple[str, int]], commit: str = ""
) -> SubmissionFacts:
    """A submission with the (finding, judge) of its verdicts."""
    found = list(verdicts)
    return SubmissionFacts(
        report_id,
        frozenset(VerdictFinding(finding) for finding, _ in found),
        frozenset(judge for _, judge in found),
        commit,
    )
