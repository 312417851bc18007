"""An agent's own branch: checked out, committed to and pushed (Spec: hands 4, hands 19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts.rows import contract_facts, lock_contract
from contracts.rules import ContractFacts, can_work_on
from core.actions import Action
from core.actors import System
from core.database import needs_transaction
from core.decision import Code, refuse
from ledger.services import record
from orgchart.models import Organisation
from toolbox.caller import Caller
from workspace.git import rules
from workspace.git.control import BareRepository, GitFailed, Signature
from workspace.git.models import Branch, BranchMove, Draft, MoveKind, Repository
from workspace.git.places import place_of
from workspace.git.repositories import bare_of, branch_row, drafts_of, ensure_repository, lock
from workspace.results import BranchResult
from workspace.services import require_branch, require_commit


def check_out(*, caller: Caller, name: str, take_in_main: bool, now: datetime) -> BranchResult:
    """Put the branch of the caller's contract into its work tree; it begins at the main branch.

    With `take_in_main` what the main branch has since then is merged into the files; the next
    commit keeps the merge, and files with conflicts carry git's marks until then. Raises Denied
    BRANCH_DENIED, CONTRACT_REQUIRED; INVALID_TRANSITION where uncommitted changes are in the way;
    ISOLATION_UNAVAILABLE.
    """
    contract = require_branch(caller, name)
    with transaction.atomic():
        repository = _hold_work_tree(caller, now)
        draft = _checked_out(caller, contract, repository, now)
        if take_in_main:
            _take_in_main(caller, repository, draft, now)
    return {"branch": draft.branch, "commit": draft.commit}


def commit(*, caller: Caller, message: str, paths: Sequence[str], now: datetime) -> BranchResult:
    """Commit files of the work tree on the branch of the caller's contract, as the caller.

    What is committed is decided by what git found, not by what was asked for: a folder that
    contains a denied file refuses the commit. Raises Denied BRANCH_DENIED, SCOPE_DENIED,
    CONTRACT_REQUIRED, INVALID_PARAMS, INVALID_TRANSITION without changes, ISOLATION_UNAVAILABLE.
    """
    contract = require_commit(caller, paths)
    with transaction.atomic():
        repository = _hold_work_tree(caller, now)
        draft = _checked_out(caller, contract, repository, now)
        place = place_of(caller, repository.organisation)
        tree, pack = place.stage(draft.base, paths, may_be_empty=bool(draft.merging))
        before, new = (
            draft.commit,
            _store(caller, contract, draft, Staged(tree, pack, message), now),
        )
        draft.commit, draft.updated_at = new, now
        draft.merging, draft.merged_tree, draft.conflicts = "", "", []
        draft.save()
        record(
            Action.BRANCH_COMMITTED,
            by=caller,
            at=now,
            subject=f"contract:{contract.id}",
            details={"branch": draft.branch, "commit": new, "parent": before},
        )
    return {"branch": draft.branch, "commit": new}


def push(*, caller: Caller, name: str, now: datetime) -> BranchResult:
    """Push the branch of the caller's contract to the organisation's repository.

    The contract is locked: it stays in progress until the push is recorded. Raises Denied
    BRANCH_DENIED, CONTRACT_REQUIRED; INVALID_TRANSITION without a commit, or where it moved.
    """
    contract = require_branch(caller, name)
    with transaction.atomic():
        repository = _hold_work_tree(caller, now)
        row, facts = lock_contract(contract.id, caller)
        caller.require(can_work_on(facts, caller.agent))
        draft = Draft.objects.filter(contract_id=contract.id).first()
        if draft is None:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"nothing is committed on {name} yet",
                "write files, then commit them with git_commit",
                rule="a push has commits (spec: hands 19)",
            )
        lock("repository", repository.id)
        branch = branch_row(repository, name)
        _require_free(caller, contract, branch, name)
        old = branch.commit if branch else ""
        if draft.commit != old:
            _save_branch(repository, branch, name, draft.commit, contract.id)
            _record_push(caller, repository, draft, old, row.issuer_id, now)
            _push(repository, name, old, draft.commit)
    return {"branch": name, "commit": draft.commit}


@needs_transaction
def _hold_work_tree(caller: Caller, now: datetime) -> Repository:
    """The repository, with the caller's work tree held until the transaction ends."""
    organisation = Organisation.objects.get(id=caller.organisation_id)
    system = System(name="git", organisation_id=organisation.id)
    repository = ensure_repository(organisation=organisation, caller=system, now=now)
    lock("agent", caller.agent.id)
    return repository


@needs_transaction
def _checked_out(
    caller: Caller, contract: ContractFacts, repository: Repository, now: datetime
) -> Draft:
    """The contract's draft, in the caller's work tree and not behind what was pushed."""
    drafts = Draft.objects.filter(agent_id=caller.agent.id)
    current = drafts.filter(checked_out=True).first()
    draft = drafts.filter(contract_id=contract.id).first()
    begin = _begin_of(caller, contract, repository, draft)
    is_new = draft is None
    if draft is None:
        draft = Draft(
            contract_id=contract.id, agent_id=caller.agent.id, branch=contract.assigned_branch
        )
    if draft.checked_out and draft.commit == begin:
        return draft
    was = draft.base if draft.checked_out else current.base if current else ""
    if draft.commit != begin:
        draft.commit, draft.merging, draft.merged_tree, draft.conflicts = begin, "", "", []
    switches = current is not None and not draft.checked_out
    place_of(caller, repository.organisation).check_out(was, draft.base, clean=switches)
    drafts.filter(checked_out=True).update(checked_out=False)
    draft.checked_out, draft.updated_at = True, now
    draft.save(force_insert=is_new)
    record(
        Action.BRANCH_CHECKED_OUT,
        by=caller,
        at=now,
        subject=f"contract:{contract.id}",
        details={"branch": draft.branch, "commit": draft.commit},
    )
    return draft


@needs_transaction
def _begin_of(
    caller: Caller, contract: ContractFacts, repository: Repository, draft: Draft | None
) -> str:
    """The commit that the contract's branch is at, for its assignee."""
    name = contract.assigned_branch
    lock("repository", repository.id)
    pushed = branch_row(repository, name)
    _require_free(caller, contract, pushed, name)
    main = branch_row(repository, repository.main)
    assert main is not None  # noqa: S101  a repository is inserted with its main branch
    drafts = drafts_of(repository.organisation)
    if draft is not None:
        is_behind = pushed is not None and drafts.is_ancestor(draft.commit, pushed.commit)
        return pushed.commit if pushed is not None and is_behind else draft.commit
    if pushed is None or drafts.is_ancestor(pushed.commit, main.commit):
        return main.commit
    return pushed.commit


def _require_free(
    caller: Caller, contract: ContractFacts, branch: Branch | None, name: str
) -> None:
    """No other open contract has pushed to the branch. Raises Denied BRANCH_DENIED."""
    held = branch.contract if branch else None
    holder = contract_facts(held, caller.policy) if held else None
    caller.require(rules.can_continue_branch(name, holder, contract.id))


@needs_transaction
def _take_in_main(caller: Caller, repository: Repository, draft: Draft, now: datetime) -> None:
    """Merge the main branch into the files of a draft; its next commit keeps the merge."""
    drafts = drafts_of(repository.organisation)
    main = Branch.objects.get(repository=repository, name=repository.main).commit
    if draft.merging or drafts.is_ancestor(main, draft.commit):
        return
    tree, conflicts = drafts.merge(draft.commit, main)
    place_of(caller, repository.organisation).check_out(draft.commit, tree, clean=True)
    draft.merging, draft.merged_tree, draft.conflicts = main, tree, conflicts
    draft.updated_at = now
    draft.save()


@dataclass(frozen=True, slots=True)
class Staged:
    """What the sandbox prepared for a commit: a tree and a pack of its new objects."""

    tree: str
    pack: bytes
    message: str


@needs_transaction
def _store(
    caller: Caller, contract: ContractFacts, draft: Draft, staged: Staged, now: datetime
) -> str:
    """Check a staged tree, and store it as a commit of the caller; nothing refused is kept."""
    organisation = draft.contract.organisation
    drafts = drafts_of(organisation)
    try:
        with drafts.quarantined() as checked:
            checked.take_pack(staged.pack)
            _require_allowed(caller, contract, draft, checked, staged.tree)
        drafts.take_pack(staged.pack)
        parents = [draft.commit, *([draft.merging] if draft.merging else [])]
        author = Signature(
            name=caller.handle, email=f"{caller.handle}@{organisation.slug}.invalid", at=now
        )
        new = drafts.commit(staged.tree, parents, staged.message, author)
        drafts.set_ref(f"refs/drafts/{contract.id}", new)
    except GitFailed as problem:
        raise refuse(
            Code.INVALID_PARAMS,
            f"the repository does not accept these files: {problem.said[:500]}",
            "leave out what git calls broken, and commit the rest",
            rule="nothing in the work tree runs (spec: hands 5)",
            paths="contain something that git refuses",
        ) from problem
    return new


def _require_allowed(
    caller: Caller, contract: ContractFacts, draft: Draft, checked: BareRepository, tree: str
) -> None:
    """Every change is in scope, and no conflict of a merge is left. Raises Denied."""
    changes = checked.changes(draft.merging or draft.commit, tree)
    scopes = tuple(contract.workspace_scope)
    caller.require(rules.can_commit_changes(changes, caller.agent, caller.role.files, scopes))
    if draft.conflicts:
        resolved = {change.path for change in checked.changes(draft.merged_tree, tree)}
        left = [path for path in draft.conflicts if path not in resolved]
        caller.require(rules.can_end_merge(left))


def _push(repository: Repository, name: str, old: str, new: str) -> None:
    """Move the branch by git's own push, which the repository's hook decides on."""
    bare, drafts = bare_of(repository.organisation), drafts_of(repository.organisation)
    try:
        drafts.run(
            "push", "--porcelain", "--no-verify", f"--force-with-lease=refs/heads/{name}:{old}",
            "--", str(bare.folder), f"{new}:refs/heads/{name}",
            environment={"NEXUS_BRANCH": name},
        )  # fmt: skip
    except GitFailed as problem:
        is_hook = "NEXUS:" in problem.said
        raise refuse(
            Code.BRANCH_DENIED if is_hook else Code.INVALID_TRANSITION,
            f"the repository refuses the push: {problem.said[:500]}",
            f"push {name}" if is_hook else "call git_branch, which takes in what was pushed before",
            rule="no push reaches a protected branch (spec: hands 2)",
        ) from problem


def _save_branch(
    repository: Repository, branch: Branch | None, name: str, commit: str, contract_id: str
) -> None:
    branch = branch or Branch(repository=repository, name=name)
    branch.commit, branch.contract_id = commit, contract_id
    branch.save()


def _record_push(
    caller: Caller,
    repository: Repository,
    draft: Draft,
    old: str,
    issuer_id: int | None,
    now: datetime,
) -> None:
    BranchMove.objects.create(
        repository=repository,
        branch=draft.branch,
        kind=MoveKind.PUSH,
        old=old,
        new=draft.commit,
        contract_id=draft.contract_id,
        by=caller.actor,
        at=now,
    )
    record(
        Action.BRANCH_PUSHED,
        by=caller,
        at=now,
        subject=f"contract:{draft.contract_id}",
        for_agent_id=issuer_id,
        kind="contract",
        details={"branch": draft.branch, "from": old, "commit": draft.commit},
    )
