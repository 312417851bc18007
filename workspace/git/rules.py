"""What git may do: changes, reviews, merges, and where a repository may come from; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.judging import SubmissionFacts, is_responsible
from contracts.rules import ContractFacts
from contracts.vocabulary import ContractState, VerdictFinding
from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, FileScopes, Policy
from orgchart.policy.paths import can_touch, is_of_company
from orgchart.policy.vocabulary import Access

COMMIT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
PLAIN_FILES = frozenset({"100644", "100755"})
GONE = "000000"

MERGEABLE = (ContractState.REVIEW, ContractState.PASSED)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs between two trees: its mode afterwards, and its path."""

    mode: str
    path: str


def parse_changes(raw: bytes) -> list[FileChange]:
    """The changes that `git diff-tree -r -z --raw --no-renames` lists."""
    words = raw.split(b"\0")
    return [
        FileChange(head.split(b" ")[1].decode("ascii"), path.decode("utf-8", "surrogateescape"))
        for head, path in zip(words[0::2], words[1::2], strict=False)
    ]


def shown(path: str) -> str:
    """A path as an answer can hold it: bytes that are no text are replaced."""
    return path.encode("utf-8", "replace").decode()


def can_commit_changes(
    changes: Iterable[FileChange], agent: Agent, files: FileScopes, scopes: Sequence[str]
) -> Decision:
    """Decide whether these changes may become a commit: plain files within the write scope.

    Spec: hands 4, hands 5.
    """
    for change in changes:
        name = shown(change.path)
        if is_of_company(change.path):
            return deny(
                Code.SCOPE_DENIED,
                f"{name} is in the company tree, not in the repository",
                "commit files of the code only; leave this path out",
                rule="a commit contains only paths in scope (spec: hands 4)",
            )
        touching = can_touch(
            change.path, Access.WRITE, agent=agent, files=files, contract_scope=scopes
        )
        if isinstance(touching, Deny):
            return touching
        if change.mode not in PLAIN_FILES and change.mode != GONE:
            return deny(
                Code.SCOPE_DENIED,
                f"{name} is a link or a submodule; a commit contains plain files only",
                "put a plain file in its place, or leave the path out",
                rule="nothing in the work tree runs (spec: hands 5)",
            )
        if change.path.rpartition("/")[2].casefold() == ".gitmodules":
            return deny(
                Code.SCOPE_DENIED,
                f"{name} configures submodules, which the repository does not have",
                "leave this path out",
                rule="nothing in the work tree runs (spec: hands 5)",
            )
    return Allow("a commit contains only paths in scope (spec: hands 4)")


def can_end_merge(conflicts: Sequence[str]) -> Decision:
    """Decide whether a commit may end a merge: no file has conflicts left (Spec: hands 21)."""
    if not conflicts:
        return Allow("a merge has no conflicts (spec: hands 21)")
    return deny(
        Code.INVALID_TRANSITION,
        f"the main branch is being taken in, and {', '.join(conflicts[:20])} still has conflicts",
        "resolve the lines between <<<<<<< and >>>>>>> and name these files in git_commit",
        rule="a merge has no conflicts (spec: hands 21)",
        conflicts=list(conflicts[:200]),
    )


def can_continue_branch(name: str, holder: ContractFacts | None, contract_id: str) -> Decision:
    """Decide whether a contract may work on a branch that exists: `holder` pushed it last.

    Spec: hands 19.
    """
    finished = holder is None or holder.state in (
        ContractState.PASSED, ContractState.FAILED, ContractState.CANCELLED,
    )  # fmt: skip
    if holder is None or finished or holder.id == contract_id:
        return Allow("one open contract works on a branch (spec: hands 19)")
    return deny(
        Code.BRANCH_DENIED,
        f"{name} is the branch of another contract, which is {holder.state}",
        "ask your superior for a contract with a branch of its own",
        rule="one open contract works on a branch (spec: hands 19)",
    )


def can_take_over(name: str, changes: Decision) -> Decision:
    """Decide whether a contract may go on with what another one pushed to its branch.

    `changes` says whether its assignee might have committed all of that under this contract. The
    refusal names no file: names are text of another agent (Spec: hands 19, mail 38).
    """
    if isinstance(changes, Allow):
        return changes
    return deny(
        Code.BRANCH_DENIED,
        f"{name} holds work of another contract that is outside of this one's scope",
        "ask your superior for a contract with a branch of its own",
        rule="one open contract works on a branch (spec: hands 19)",
    )


def can_hand_over(
    name: str, before: ContractFacts, contract: ContractFacts, policy: Policy
) -> Decision:
    """Decide whether a contract goes on with what another agent pushed: only a manager that ordered
    that work, or is above who did it, hands it over (Spec: hands 19, mail 38).
    """
    issuer = contract.issuer
    is_relayed = issuer.id == before.issuer.id or (
        isinstance(issuer, Agent) and policy.is_above(issuer, before.assignee)
    )
    if before.assignee.id == contract.assignee.id or is_relayed:
        return Allow("one open contract works on a branch (spec: hands 19)")
    return deny(
        Code.BRANCH_DENIED,
        f"{name} holds work of another agent, which {issuer.handle} neither ordered nor manages",
        "ask your superior for a contract with a branch of its own",
        rule="one open contract works on a branch (spec: hands 19)",
    )


def can_review(contract: ContractFacts, who: Agent, policy: Policy) -> Decision:
    """Decide whether an agent reviews a contract's branch: its issuer, or above its assignee.

    Spec: hands 20.
    """
    if who.id == contract.assignee.id:
        return deny(
            Code.NOT_YOURS,
            f"you work on {contract.id} yourself, so you do not review it",
            f"leave the review to {contract.issuer.handle}",
            rule="the reviewer did not make it (spec: hands 20)",
        )
    if who.id in contract.makers:
        return deny(
            Code.NOT_YOURS,
            f"you work on {contract.assigned_branch} yourself, so you do not review it",
            "let another manager review it, or have the rest done on a branch of its own",
            rule="the reviewer did not make it (spec: hands 20)",
        )
    if is_responsible(contract, who) or policy.is_above(who, contract.assignee):
        return Allow("the issuer and the managers review (spec: hands 20)")
    return no_such_branch()


def no_such_branch() -> Deny:
    """One answer for a branch that does not exist and one that the caller may not see."""
    return deny(
        Code.NOT_FOUND,
        "none of your workers' contracts has such a branch",
        "list_contracts shows the contracts that you issued, with their branches",
        rule="the issuer and the managers review (spec: hands 20)",
    )


def nothing_pushed(branch: str, assignee: str) -> Deny:
    """The refusal of a review of a branch that was never pushed."""
    return deny(
        Code.NOT_FOUND,
        f"nothing was pushed to {branch} yet",
        f"wait until {assignee} has pushed it with git_push",
        rule="a review is of one contract's branch (spec: hands 20)",
    )


def can_merge(
    contract: ContractFacts,
    *,
    submission: SubmissionFacts | None,
    judged: str,
    tip: str,
    wanted: str | None,
) -> Decision:
    """Decide whether a contract's branch may be merged: QA passed the very commit it is at.

    `submission` is the latest one, `judged` the commit that its PASS names, `tip` where the branch
    is, `wanted` the commit that the reviewer says it saw. Spec: hands 21.
    """
    if wanted is not None and wanted != tip:
        return deny(
            Code.VERSION_MISMATCH,
            f"{contract.assigned_branch} is at {tip}, not at {wanted[:64]}",
            "look at the difference again (review_pr without approve), then approve that commit",
            rule="a review is about one commit (spec: hands 21)",
            expected=wanted[:64],
            current=tip,
        )
    if contract.state not in MERGEABLE:
        return deny(
            Code.INVALID_TRANSITION,
            f"{contract.id} is {contract.state}; work is merged after its submission",
            f"{contract.assignee.handle} submits it first, with submit_report (completion)",
            rule="a merge needs QA's PASS on that commit (spec: hands 21)",
            state=str(contract.state),
            allowed=[],
        )
    finding = submission.finding if submission else None
    if finding is not VerdictFinding.PASS:
        found = f"QA's verdict is {finding}" if finding else "QA has given no verdict"
        return _not_passed(contract, tip, f"{found} on the submission")
    if judged != tip:
        judged = judged or "no commit: nothing was pushed when the work was submitted"
        return _not_passed(contract, tip, f"QA's PASS is about {judged}")
    return Allow("a merge needs QA's PASS on that commit (spec: hands 21)")


def _not_passed(contract: ContractFacts, tip: str, found: str) -> Deny:
    return deny(
        Code.APPROVAL_REQUIRED,
        f"{contract.assigned_branch} is at {tip} and QA has not passed this commit: {found}",
        "send the work back with close_contract (outcome rework): a new submission and a new "
        "verdict follow"
        if contract.state is ContractState.REVIEW
        else "give the rest as a new contract that names this one in supersedes",
        rule="a merge needs QA's PASS on that commit (spec: hands 21)",
        tip=tip,
    )


def conflicted(branch: str, main: str, paths: Sequence[str]) -> Deny:
    """The refusal of a merge in which both sides changed the same lines."""
    named = ", ".join(paths[:20])
    return deny(
        Code.INVALID_TRANSITION,
        f"{branch} and {main} changed the same lines in {named or 'the same files'}; nothing is "
        "merged",
        "send the work back with close_contract (outcome rework); its assignee takes in "
        f"{main} with git_branch (take_in_main) and resolves the conflicts",
        rule="a merge has no conflicts (spec: hands 21)",
        conflicts=list(paths[:200]),
    )
