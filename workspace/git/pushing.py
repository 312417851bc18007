"""Pushing an agent's branch, and what its git calls need of the repository (Spec: hands 19)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from contracts.rules import ContractFacts, can_work_on
from contracts.store import contract_facts, lock_contract
from core.actions import Action
from core.actors import System
from core.database import hold_lock, needs_transaction
from core.decision import Code, refuse
from ledger.services import record
from orgchart.models import Organisation
from toolbox.caller import Caller
from workspace.git import rules
from workspace.git.evidence import taken_in
from workspace.git.holding import held_work_tree
from workspace.git.models import Branch, BranchMove, Draft, MoveKind, Repository
from workspace.git.repositories import bare_of, branch_row, drafts_of, ensure_repository
from workspace.git.running import GitFailed
from workspace.results import BranchResult
from workspace.rules import can_use_branch
from workspace.services import require_branch, require_still_allowed


def push(*, caller: Caller, name: str, now: datetime) -> BranchResult:
    """Push the branch of the caller's contract to the organisation's repository.

    The push is recorded, and counts, only if the contract is still in progress and the branch is
    where it was; otherwise the next call that uses the branch undoes it. Raises Denied
    BRANCH_DENIED, CONTRACT_REQUIRED; INVALID_TRANSITION without a commit, or where it moved.
    """
    contract = require_branch(caller, name)
    with held_work_tree(caller):
        repository = repository_of(caller, now)
        draft = _committed(contract)
        with transaction.atomic():
            old = _require_pushable(caller, contract, repository, name)[1]
        if draft.commit != old:
            _push(repository, name, old, draft.commit)
            with transaction.atomic():
                issuer, now_at = _require_pushable(caller, contract, repository, name)
                require_still_allowed(caller, caller.tool)
                if now_at != old:
                    raise moved_meanwhile()
                _save_branch(repository, name, draft.commit, contract.id)
                _record_push(caller, repository, draft, old, issuer, now)
                ref = f"refs/heads/{name}"
                bare_of(repository.organisation).set_ref(ref, draft.commit, old)
    return {"branch": name, "commit": draft.commit}


def check_push(*, caller: Caller, name: str) -> None:
    """Decide a push as far as no work of git decides it, and push nothing. Raises Denied."""
    contract = require_branch(caller, name)
    _committed(contract)
    repository = present_repository(caller)
    if repository is not None:
        with transaction.atomic():
            _require_pushable(caller, contract, repository, name)


def _committed(contract: ContractFacts) -> Draft:
    draft = Draft.objects.filter(contract_id=contract.id).first()
    if draft is None:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"nothing is committed on {contract.assigned_branch} yet",
            "write files, then commit them with git_commit",
            rule="a push has commits (spec: hands 19)",
        )
    return draft


@needs_transaction
def _require_pushable(
    caller: Caller, contract: ContractFacts, repository: Repository, name: str
) -> tuple[int | None, str]:
    """The contract's issuer, and the commit that its branch is at ('' for none); both are locked.

    Raises Denied where the contract is not in progress or another one works on the branch.
    """
    row, facts = lock_contract(contract.id, caller)
    caller.require(can_work_on(facts, caller.agent))
    hold_lock("git repository", repository.id)
    branch = branch_row(repository, name)
    require_free(caller, contract, repository, branch)
    return row.issuer_id, branch.commit if branch else ""


def repository_of(caller: Caller, now: datetime) -> Repository:
    """The repository of the caller's organisation, made where it is missing."""
    organisation = Organisation.objects.get(id=caller.organisation_id)
    system = System(name="git", organisation_id=organisation.id)
    return ensure_repository(organisation=organisation, caller=system, now=now)


def present_repository(caller: Caller) -> Repository | None:
    """The repository of the caller's organisation where it is in its place; None is made."""
    found = Repository.objects.filter(organisation_id=caller.organisation_id).first()
    return found if found and drafts_of(found.organisation).folder.is_dir() else None


@needs_transaction
def require_present(repository: Repository) -> None:
    """Raise Denied INVALID_TRANSITION where another repository took its place meanwhile.

    None does so until the transaction ends.
    """
    hold_lock("git organisation", repository.organisation_id)
    if not Repository.objects.filter(id=repository.id).exists():
        raise moved_meanwhile()


def require_free(
    caller: Caller, contract: ContractFacts, repository: Repository, branch: Branch | None
) -> None:
    """The repository has room for the contract's branch, and no other open contract pushed to it.

    Raises Denied BRANCH_DENIED.
    """
    name = contract.assigned_branch
    taken = taken_in(repository, name)
    caller.require(can_use_branch(name, name, taken))
    held = branch.contract if branch else None
    holder = contract_facts(held, caller.policy) if held else None
    caller.require(rules.can_continue_branch(name, holder, contract.id))


def moved_meanwhile() -> Exception:
    """The refusal of a change whose row is another one than git has read (Spec: hands 30)."""
    return refuse(
        Code.INVALID_TRANSITION,
        "the branch moved while git worked on it; nothing was changed",
        "call git_branch, which takes in what happened, then try again",
        rule="git changes what it has read (spec: hands 30)",
    )


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
        is_unmoved = not is_hook and bare.commit_at(f"refs/heads/{name}") == old
        if is_unmoved and drafts.is_ancestor(old or new, new):
            raise  # the commit follows the branch: the repository itself takes nothing
        raise refuse(
            Code.BRANCH_DENIED if is_hook else Code.INVALID_TRANSITION,
            f"the repository refuses the push: {problem.said[:500]}",
            f"push {name}" if is_hook else "call git_branch, which takes in what was pushed before",
            rule="no push reaches a protected branch (spec: hands 2)",
        ) from problem


def _save_branch(repository: Repository, name: str, commit: str, contract_id: str) -> None:
    Branch.objects.update_or_create(
        repository=repository,
        name=name,
        defaults={"commit": commit, "contract_id": contract_id},
    )


def _record_push(
    caller: Caller,
    repository: Repository,
    draft: Draft,
    old: str,
    issuer_id: int | None,
    now: datetime,
) -> None:
    BranchMove.objects.create(
        organisation_id=repository.organisation_id,
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
