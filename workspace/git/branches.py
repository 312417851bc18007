"""An agent's branch in its work tree: checked out and committed to (Spec: hands 4, hands 19)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction

from contracts.rules import ContractFacts, can_work_on
from contracts.store import contract_facts, lock_contract
from core.actions import Action
from core.database import hold_lock, needs_transaction, retry_broken
from core.decision import Code, refuse
from ledger.services import record
from toolbox.caller import Caller
from toolbox.quotas.charging import charge
from workspace.git import rules
from workspace.git.bare_repository import BareRepository, Signature
from workspace.git.holding import held_work_tree
from workspace.git.models import Branch, Draft, Repository
from workspace.git.places import place_of
from workspace.git.pushing import (
    moved_meanwhile,
    present_repository,
    repository_of,
    require_free,
    require_present,
)
from workspace.git.repositories import branch_row, drafts_of
from workspace.git.running import GitFailed
from workspace.git.worktree import Uncommitted
from workspace.results import BranchResult
from workspace.services import require_branch, require_commit, require_still_allowed

OF_FILES = "fsck error"
"""What git says where it refuses the files themselves; anything else is a fault of its disk."""


def check_out(
    *, caller: Caller, name: str, take_in_main: bool, discard_changes: bool, now: datetime
) -> BranchResult:
    """Put the branch of the caller's contract into its work tree; it begins at the main branch.

    With `take_in_main` what the main branch has since then is merged into the files; the next
    commit keeps the merge, and files with conflicts carry git's marks until then. With
    `discard_changes` files are as they were committed: the only way on where the contract that
    they were changed for is over. Raises Denied BRANCH_DENIED, CONTRACT_REQUIRED;
    INVALID_TRANSITION where uncommitted changes are in the way; ISOLATION_UNAVAILABLE.
    """
    contract = require_branch(caller, name)
    with held_work_tree(caller):
        repository = repository_of(caller, now)
        draft = _checked_out(caller, contract, repository, now, discard=discard_changes)
        if take_in_main:
            _take_in_main(caller, contract, repository, draft, now)
    return {"branch": draft.branch, "commit": draft.commit}


def check_branch(*, caller: Caller, contract: ContractFacts) -> None:
    """Decide whether the contract's branch may be worked on, and check nothing out.

    Raises Denied BRANCH_DENIED.
    """
    repository = present_repository(caller)
    if repository is not None:
        draft = Draft.objects.filter(agent_id=caller.agent.id, contract_id=contract.id).first()
        with transaction.atomic():
            _begin_of(caller, contract, repository, draft)


def commit(*, caller: Caller, message: str, paths: Sequence[str], now: datetime) -> BranchResult:
    """Commit files of the work tree on the branch of the caller's contract, as the caller.

    What is committed is decided by what git found, not by what was asked for: a folder that
    contains a denied file refuses the commit. Raises Denied BRANCH_DENIED, SCOPE_DENIED,
    CONTRACT_REQUIRED, INVALID_PARAMS, INVALID_TRANSITION without changes, ISOLATION_UNAVAILABLE.
    """
    contract = require_commit(caller, paths)
    with held_work_tree(caller):
        repository = repository_of(caller, now)
        check_out_first = partial(_checked_out, caller, contract, repository, now)
        draft = retry_broken(check_out_first, is_repeatable=True)
        place = place_of(caller, repository.organisation)
        tree, pack = place.stage(draft.base, paths, may_be_empty=bool(draft.merging))
        new = _store(caller, contract, draft, Staged(tree, pack, message), now)
        move = partial(_move_draft, caller, contract, draft, new, now)
        retry_broken(move, is_repeatable=True)
    return {"branch": draft.branch, "commit": new}


def _move_draft(
    caller: Caller, contract: ContractFacts, draft: Draft, new: str, now: datetime
) -> None:
    """Move a draft to its new commit, with its event; nothing where that was done already.

    Raises Denied.
    """
    with transaction.atomic():
        if Draft.objects.filter(id=draft.id, commit=new).exists():
            return
        moved = copy(draft)
        moved.commit = new
        moved.merging, moved.merged_tree, moved.conflicts = "", "", []
        _save_draft(caller, contract, moved, now)
        record(
            Action.BRANCH_COMMITTED,
            by=caller,
            at=now,
            subject=f"contract:{contract.id}",
            details={"branch": draft.branch, "commit": new, "parent": draft.commit},
        )
        drafts_of(draft.contract.organisation).set_ref(f"refs/drafts/{contract.id}", new)


@needs_transaction
def _save_draft(caller: Caller, contract: ContractFacts, draft: Draft, now: datetime) -> None:
    """Save a draft after the work of git, if the contract is in progress and the row as it was.

    Raises Denied.
    """
    _, facts = lock_contract(contract.id, caller)
    caller.require(can_work_on(facts, caller.agent))
    require_still_allowed(caller, caller.tool)
    seen, draft.updated_at = draft.updated_at, now
    if draft._state.adding:  # noqa: SLF001  Django's public name
        draft.save(force_insert=True)
    elif Draft.objects.select_for_update().filter(id=draft.id, updated_at=seen).exists():
        draft.save()
    else:
        raise moved_meanwhile()


def _checked_out(
    caller: Caller,
    contract: ContractFacts,
    repository: Repository,
    now: datetime,
    *,
    discard: bool = False,
) -> Draft:
    """The contract's draft, in the caller's work tree and not behind what was pushed."""
    drafts = Draft.objects.filter(agent_id=caller.agent.id)
    current = drafts.filter(checked_out=True).first()
    place = place_of(caller, repository.organisation)
    place.settle(current.base if current else "")
    draft = drafts.filter(contract_id=contract.id).first()
    with transaction.atomic():
        begin = _begin_of(caller, contract, repository, draft)
    if draft is None:
        draft = Draft(
            contract_id=contract.id, agent_id=caller.agent.id, branch=contract.assigned_branch
        )
    if draft.checked_out and draft.commit == begin and not discard:
        return draft
    was = draft.base if draft.checked_out else current.base if current else ""
    if draft.commit != begin:
        draft.commit, draft.merging, draft.merged_tree, draft.conflicts = begin, "", "", []
    switches = current is not None and not draft.checked_out
    kept = Uncommitted.REFUSE if switches else Uncommitted.KEEP
    changes = Uncommitted.DISCARD if discard else kept
    with place.turned(was, draft.base, changes), transaction.atomic():
        if draft._state.adding:  # noqa: SLF001  Django's public name
            require_present(repository)  # once there is a draft, none takes its place
        drafts.filter(checked_out=True).exclude(id=draft.id).update(checked_out=False)
        draft.checked_out = True
        _save_draft(caller, contract, draft, now)
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
    hold_lock("git repository", repository.id)
    pushed = branch_row(repository, name)
    require_free(caller, contract, repository, pushed)
    main = branch_row(repository, repository.main)
    assert main is not None  # noqa: S101  a repository is inserted with its main branch
    drafts = drafts_of(repository.organisation)
    if draft is not None and not (pushed and drafts.is_ancestor(draft.commit, pushed.commit)):
        return draft.commit
    if pushed is None or (draft is None and drafts.is_ancestor(pushed.commit, main.commit)):
        return main.commit
    if pushed.contract_id != contract.id:
        if pushed.contract is not None:
            before = contract_facts(pushed.contract, caller.policy)
            caller.require(rules.can_hand_over(name, before, contract, caller.policy))
        _require_own_scope(caller, contract, drafts, main.commit, pushed)
    return pushed.commit


def _require_own_scope(
    caller: Caller, contract: ContractFacts, drafts: BareRepository, main: str, pushed: Branch
) -> None:
    """All that another contract's work changes is in this one's scope. Raises Denied.

    A verdict on the branch is about it, too, and its judge sees nothing outside of the scope.
    """
    changes = drafts.changes(drafts.merge_base(main, pushed.commit), pushed.commit)
    scopes = tuple(contract.workspace_scope)
    allowed = rules.can_commit_changes(changes, caller.agent, caller.role.files, scopes)
    caller.require(rules.can_take_over(pushed.name, allowed))


def _take_in_main(
    caller: Caller, contract: ContractFacts, repository: Repository, draft: Draft, now: datetime
) -> None:
    """Merge the main branch into the files of a draft; its next commit keeps the merge."""
    drafts = drafts_of(repository.organisation)
    main = Branch.objects.get(repository=repository, name=repository.main).commit
    if draft.merging or drafts.is_ancestor(main, draft.commit):
        return
    tree, conflicts = drafts.merge(draft.commit, main)
    place = place_of(caller, repository.organisation)
    draft.merging, draft.merged_tree, draft.conflicts = main, tree, conflicts
    with place.turned(draft.commit, tree, Uncommitted.REFUSE), transaction.atomic():
        _save_draft(caller, contract, draft, now)


@dataclass(frozen=True, slots=True)
class Staged:
    """What the sandbox prepared for a commit: a tree and a pack of its new objects."""

    tree: str
    pack: bytes
    message: str


def _store(
    caller: Caller, contract: ContractFacts, draft: Draft, staged: Staged, now: datetime
) -> str:
    """Check a staged tree, and store it as a commit of the caller, which no ref names yet.

    Nothing refused is kept.
    """
    organisation = draft.contract.organisation
    drafts = drafts_of(organisation)
    try:
        with drafts.quarantined() as checked:
            checked.take_pack(staged.pack)
            _require_allowed(caller, contract, draft, checked, staged.tree)
        charge(
            agent=caller.agent.id,
            policy=caller.policy,
            size=len(staged.pack),
            now=now,
        )
        drafts.take_pack(staged.pack)
        parents = [draft.commit, *([draft.merging] if draft.merging else [])]
        author = Signature(
            name=caller.handle, email=f"{caller.handle}@{organisation.slug}.invalid", at=now
        )
        new = drafts.commit(staged.tree, parents, staged.message, author)
    except GitFailed as problem:
        if OF_FILES not in problem.said:
            raise
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
