"""Reviews of a contract's branch: difference, comment and merge (Spec: hands 20, hands 21)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction

from contracts.models import Contract
from contracts.queries import JudgedSubmission, judged_submission
from contracts.rules import ContractFacts, can_see
from contracts.store import contract_facts, makers_among, writers_of_terms
from contracts.vocabulary import AT_WORK
from core.actions import Action
from core.database import hold_lock, needs_transaction, retry_broken
from core.decision import Allow, Code, Decision, Denied, refuse
from ledger.services import record
from mailroom.delivery import send_as, send_system_mail
from orgchart.policy.readership import can_tell
from toolbox.caller import Caller
from workspace.git import rules
from workspace.git.bare_repository import Signature
from workspace.git.models import Branch, BranchMove, MoveKind, Repository
from workspace.git.repositories import bare_of, branch_row
from workspace.outside_calls import slot
from workspace.results import ReviewComment
from workspace.services import require_still_allowed

TRIES = 3
"""How often a review begins again because a branch moved meanwhile."""
SHOWN = 200_000
"""Characters of a difference that a review shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDraft:
    """A review as its author gives it."""

    branch: str
    comment: str
    contract_id: str | None = None
    approve: bool = False
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class _Reviewed:
    """The branch of a contract, as a review finds it."""

    contract: ContractFacts
    repository: Repository
    main: Branch
    branch: Branch
    judged: JudgedSubmission


def review(*, caller: Caller, draft: ReviewDraft, now: datetime) -> ReviewComment:
    """Show what a contract's branch changes and send the comment; with `approve` merge it.

    A merge needs QA's PASS on the very commit that the branch is at, and happens once: the main
    branch moves only from where it was when the difference was merged. Raises Denied NOT_FOUND,
    NOT_YOURS for one's own work, INVALID_PARAMS where several contracts have the branch,
    VERSION_MISMATCH, INVALID_TRANSITION for conflicts, APPROVAL_REQUIRED without the PASS.
    """
    contract_id = find_contract_of_branch(caller, draft)
    with slot(caller, "git calls"):
        for _ in range(TRIES):
            found = _read(caller, contract_id)
            merge = _merge(caller, found, draft, now) if draft.approve else None
            result = _result(found, merge)
            if retry_broken(partial(_keep, caller, found, draft, merge, now)):
                return result
    raise refuse(
        Code.VERSION_MISMATCH,
        f"{draft.branch} or the main branch moved while git compared them; nothing changed",
        "call again",
        rule="git changes what it has read (spec: hands 30)",
    )


def _read(caller: Caller, contract_id: str) -> _Reviewed:
    with transaction.atomic():
        return _find(caller, Contract.objects.get(id=contract_id))


def _keep(
    caller: Caller, found: _Reviewed, draft: ReviewDraft, merge: str | None, now: datetime
) -> bool:
    """Record a review, send its comment and move the main branch; False where a branch moved."""
    with transaction.atomic():
        caller = require_still_allowed(caller, "review_pr")  # git may have worked for minutes
        find_contract_of_branch(caller, replace(draft, contract_id=found.contract.id))
        row = Contract.objects.select_for_update(no_key=True).get(id=found.contract.id)
        present = _find(caller, row)
        if (present.main.commit, present.branch.commit) != (found.main.commit, found.branch.commit):
            return False
        if draft.approve:
            _require_pass(caller, present, draft)
        _record_review(caller, present, draft, merge, now)
        _send_comment(caller, present, draft, now)
        if merge is not None and merge != present.main.commit:
            _move_main(caller, present, merge, now)
    return True


def check_review(*, caller: Caller, draft: ReviewDraft) -> None:
    """Decide a review and do nothing of it. Raises Denied as `review`, but finds no conflict."""
    contract_id = find_contract_of_branch(caller, draft)
    with transaction.atomic():
        found = _find(caller, Contract.objects.get(id=contract_id))
        if draft.approve:
            _require_pass(caller, found, draft)


def find_contract_of_branch(caller: Caller, draft: ReviewDraft) -> str:
    """The contract whose branch is reviewed: the one named, or the only one that has the branch.

    Of several the one that is not closed. Raises Denied NOT_FOUND, NOT_YOURS, INVALID_PARAMS.
    """
    rows = Contract.objects.filter(
        organisation_id=caller.organisation_id, assigned_branch=draft.branch
    ).exclude(accepted_at=None)
    if draft.contract_id is not None:
        rows = rows.filter(id=draft.contract_id)
    facts = [contract_facts(row, caller.policy) for row in rows.defer("body").order_by("-id")]
    seen = [each for each in facts if isinstance(can_see(each, caller.agent, caller.policy), Allow)]
    if not seen or not draft.branch:
        raise Denied(rules.no_such_branch())
    open_ones = [each for each in seen if each.state in AT_WORK] or seen[:1]
    if len(open_ones) > 1:
        named = ", ".join(each.id for each in open_ones[:10])
        raise refuse(
            Code.INVALID_PARAMS,
            f"contract_id: {len(open_ones)} contracts have the branch {draft.branch} ({named})",
            "name one of them in contract_id",
            rule="a review is of one contract's branch (spec: hands 20)",
            contract_id="name one",
        )
    makers = makers_among([caller.agent.id], draft.branch, caller.organisation_id)
    chosen = replace(open_ones[0], makers=makers)
    caller.require(rules.can_review(chosen, caller.agent, caller.policy))
    return chosen.id


@needs_transaction
def _find(caller: Caller, row: Contract) -> _Reviewed:
    contract = contract_facts(row, caller.policy)
    repository = Repository.objects.filter(organisation_id=caller.organisation_id).first()
    if repository is None:
        raise Denied(rules.nothing_pushed(contract.assigned_branch, contract.assignee.handle))
    hold_lock("git repository", repository.id)
    branch = branch_row(repository, contract.assigned_branch)
    main = branch_row(repository, repository.main)
    if branch is None or main is None:
        raise Denied(rules.nothing_pushed(contract.assigned_branch, contract.assignee.handle))
    return _Reviewed(contract, repository, main, branch, judged_submission(row))


def _require_pass(caller: Caller, found: _Reviewed, draft: ReviewDraft) -> None:
    caller.require(
        rules.can_merge(
            found.contract,
            submission=found.judged.submission,
            judged=found.judged.passed_commit,
            tip=found.branch.commit,
            wanted=draft.commit,
        )
    )


def _merge(caller: Caller, found: _Reviewed, draft: ReviewDraft, now: datetime) -> str:
    """The commit that merges the branch into the main branch, or the main branch's if it has it.

    No branch moves yet.
    """
    _require_pass(caller, found, draft)
    bare = bare_of(found.repository.organisation)
    old, tip = found.main.commit, found.branch.commit
    if bare.is_ancestor(tip, old):
        return old
    tree, conflicts = bare.merge(old, tip)
    if conflicts:
        raise Denied(rules.conflicted(found.branch.name, found.main.name, conflicts))
    slug = found.repository.organisation.slug
    author = Signature(name=caller.handle, email=f"{caller.handle}@{slug}.invalid", at=now)
    message = f"Merge {found.branch.name} ({found.contract.id})\n\n{draft.comment}\n"
    return bare.commit(tree, [old, tip], message, author)


@needs_transaction
def _move_main(caller: Caller, found: _Reviewed, merge: str, now: datetime) -> None:
    """Move the main branch to a merge, from where it was; its ref last, when all is recorded."""
    old = found.main.commit
    BranchMove.objects.create(
        organisation_id=found.repository.organisation_id,
        repository=found.repository,
        branch=found.main.name,
        kind=MoveKind.MERGE,
        old=old,
        new=merge,
        merged=found.branch.commit,
        contract_id=found.contract.id,
        verdict_id=found.judged.passed_by,
        by=caller.actor,
        at=now,
    )
    found.main.commit = merge
    found.main.save(update_fields=["commit"])
    bare_of(found.repository.organisation).set_ref(f"refs/heads/{found.main.name}", merge, old)


@needs_transaction
def _record_review(
    caller: Caller, found: _Reviewed, draft: ReviewDraft, merge: str | None, now: datetime
) -> None:
    details = {"branch": found.branch.name, "commit": found.branch.commit}
    is_told = isinstance(_telling(caller, found), Allow)
    made = None if merge == found.main.commit else merge  # main may have it already
    if made is not None:
        passed_by = str(found.judged.passed_by)
        details |= {"main": found.main.name, "merge": made, "verdict": passed_by}
    record(
        Action.BRANCH_REVIEWED if made is None else Action.BRANCH_MERGED,
        by=caller,
        at=now,
        subject=f"contract:{found.contract.id}",
        reason=draft.comment,
        for_agent_id=(found.contract.assignee if is_told else caller.agent).id,
        kind="contract",
        details=details,
    )


def _telling(caller: Caller, found: _Reviewed) -> Decision:
    """Decide whether the comment reaches the assignee (Spec: mail 43)."""
    return can_tell(caller.policy, caller.agent, found.contract.assignee)


@needs_transaction
def _send_comment(caller: Caller, found: _Reviewed, draft: ReviewDraft, now: datetime) -> None:
    """Send the comment to the assignee as the reviewer's mail, where it may be told.

    Where it may not, the system mails that there was a review, and the comment stays in the ledger.
    """
    contract = found.contract
    if not contract.assignee.active:
        return
    subject = f"{found.branch.name} is {'merged' if draft.approve else 'reviewed'}"
    told = _telling(caller, found)
    if isinstance(told, Allow):
        send_as(
            caller=caller,
            recipient=contract.assignee,
            mail_type="info",
            subject=subject,
            body=draft.comment,
            contract_ref=contract.id,
            now=now,
            rule=f"a review's comment: {told.rule}",
        )
    else:
        send_system_mail(
            organisation_id=caller.organisation_id,
            recipient=contract.assignee,
            subject=subject,
            body=f"It is about {contract.id}, commit {found.branch.commit}.",
            quotes=writers_of_terms(contract.id),
            now=now,
            contract_ref=contract.id,
        )


def _result(found: _Reviewed, merge: str | None) -> ReviewComment:
    bare, tip = bare_of(found.repository.organisation), found.branch.commit
    base = bare.merge_base(found.main.commit, tip)
    text, is_cut = bare.difference(base, tip, SHOWN)
    judged = found.judged
    return {
        "branch": found.branch.name,
        "url": f"{settings.PUBLIC_URL}/admin/contracts/contract/{found.contract.id}/change/",
        "contract_id": found.contract.id,
        "commit": tip,
        "difference": text,
        "truncated": is_cut,
        "files": [rules.shown(change.path) for change in bare.changes(base, tip)[:1000]],
        "verdict": judged.submission.finding if judged.submission else None,
        "judged_commit": judged.passed_commit or None,
        "merged": merge is not None,
        "merge_commit": merge,
    }
