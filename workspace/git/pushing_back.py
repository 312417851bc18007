"""The main branch goes back to where a repository was imported from (Spec: hands 22)."""

from __future__ import annotations

from datetime import datetime

import structlog
from django.db import transaction

from core.actions import Action
from core.actors import Actor, System
from core.database import hold_lock, needs_transaction
from core.decision import Code, Denied, refuse
from core.permissions import Deed, require_deed
from ledger.services import record
from orgchart.organisation_settings import merged
from toolbox.scheduler import act_on_each
from workspace.git.foreign_repository import environment_for, other_side
from workspace.git.importing import IMPORT_SECONDS
from workspace.git.models import MoveKind, Repository
from workspace.git.repositories import bare_of, branch_row, require_folder
from workspace.git.running import GitFailed, run_git

AFTER_MERGE = "after_merge"

log = structlog.get_logger(__name__)


def push_back(*, repository_id: int, reason: str, caller: Actor, now: datetime) -> str:
    """Push the main branch to the repository's source, forward only; the commit that it has then.

    No transaction is open meanwhile (Spec: hands 30). Where the process ends in between, the next
    push finds the commit there already, and records it.
    Raises Denied NOT_YOURS for a person without the right, INVALID_PARAMS without a reason,
    INVALID_TRANSITION for a repository that was not imported or whose source moved on,
    DRIVER_UNAVAILABLE where its folder is gone.
    """
    require_deed(caller, Deed.PUSH_BACK, reason=reason)
    repository = Repository.objects.select_related("organisation").get(id=repository_id)
    require_folder(repository.organisation)
    with transaction.atomic():
        hold_lock("git repository", repository_id)
        main = branch_row(repository, repository.main)
        if not repository.source or main is None:
            raise refuse(
                Code.INVALID_TRANSITION,
                "this repository was created here; there is no other one to push to",
                "name the other repository with `org set ORG repository=…` before agents work",
                rule="the main branch is pushed back (spec: hands 22)",
            )
        if main.commit == repository.pushed_back:
            return main.commit
        _record(repository, Action.REPOSITORY_PUSH_STARTED, main.commit, caller, reason, now)
    _push(repository, main.commit)
    with transaction.atomic():
        before = Repository.objects.filter(id=repository_id, pushed_back=repository.pushed_back)
        if before.update(pushed_back=main.commit):
            _record(repository, Action.REPOSITORY_PUSHED_BACK, main.commit, caller, reason, now)
    return main.commit


@needs_transaction
def _record(
    repository: Repository, action: Action, commit: str, caller: Actor, reason: str, now: datetime
) -> None:
    record(
        action,
        by=caller,
        at=now,
        subject=f"repository:{repository.organisation.slug}",
        reason=reason,
        details={"from": repository.pushed_back, "commit": commit},
    )


def _push(repository: Repository, commit: str) -> None:
    folder = bare_of(repository.organisation).folder
    words = [f"--git-dir={folder}", "push", "--porcelain", "--no-verify",
             f"--receive-pack={other_side(repository.source, 'receive-pack')}", "--",
             repository.source, f"{commit}:refs/heads/{repository.main}"]  # fmt: skip
    try:
        done = run_git(
            words, environment=environment_for(repository.source), seconds=IMPORT_SECONDS
        )
        if done.returncode != 0:
            raise GitFailed("push", done.returncode, done.stderr or done.stdout)  # noqa: TRY301
    except GitFailed as problem:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"the other repository did not take the main branch: {problem.said[:500]}",
            "compare the two: if it has commits of its own, a person must merge the two",
            rule="the main branch is pushed back (spec: hands 22)",
        ) from problem


def push_back_due(now: datetime) -> int:
    """Push back what was merged where the organisation's setting says so; how many were pushed.

    A repository that cannot be read or pushed keeps no other from it.
    """
    imported = Repository.objects.exclude(source="").select_related("organisation")
    merged_into = imported.filter(moves__kind=MoveKind.MERGE).distinct()
    return act_on_each(merged_into, lambda row: _push_back_if_due(row, now))


def _push_back_if_due(repository: Repository, now: datetime) -> bool:
    if merged(repository.organisation.settings)["repository_push"] != AFTER_MERGE:
        return False
    if repository.branches.filter(name=repository.main, commit=repository.pushed_back).exists():
        return False
    caller = System(name="git", organisation_id=repository.organisation_id)
    try:
        push_back(repository_id=repository.id, reason=AFTER_MERGE, caller=caller, now=now)
    except (Denied, GitFailed) as problem:
        log.warning(
            "repository_not_pushed_back",
            organisation=repository.organisation.slug,
            problem=str(problem),
        )
        return False
    return True
