"""The main branch goes back to where a repository was imported from (Spec: hands 22)."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from core.actions import Action
from core.actors import Actor, System
from core.database import hold_lock, needs_transaction
from core.decision import Code, Denied, refuse, stale
from core.events import Event
from core.people import require_still
from core.permissions import Deed, require_deed
from ledger.services import insert_event
from toolbox.scheduler import act_in_time
from workspace.git.bare_repository import BareRepository
from workspace.git.foreign_repository import environment_for, other_side, turn
from workspace.git.importing import IMPORT_SECONDS
from workspace.git.models import Branch, MoveKind, Repository
from workspace.git.repositories import bare_of, branch_row, require_folder
from workspace.git.running import GitFailed, run_git
from workspace.homes import usage_of

AFTER_MERGE = "after_merge"
FIRST_SECONDS = 20.0
"""What the first push of a merge may take; each after one in vain may take twice as long."""
FIRST_WAIT, LONGEST_WAIT = 60.0, 3600.0
LEFT_ALONE = 3
"""Times as long as it took in vain, a repository gets no other push: others have theirs."""
MOST_FETCHED = 16 * 1024 * 1024
"""Bytes that the other repository may send back, looked at each second; none of them is kept."""
CLAIMED_FOR = timedelta(seconds=IMPORT_SECONDS + 60)
"""After this time another process may push a repository that this one took."""
BUDGET = 60.0
"""Seconds after which a run leaves the rest to the next."""

log = structlog.get_logger(__name__)


def push_back(
    *,
    repository_id: int,
    reason: str,
    caller: Actor,
    now: datetime,
    seconds: float = IMPORT_SECONDS,
    expected_commit: str = "",
) -> str:
    """Push the main branch to the repository's source, forward only; the commit that it has then.

    No transaction is open meanwhile (Spec: hands 30). Where the process ends in between, the next
    push finds the commit there already, and records it. A person pushes again what was pushed
    before: the source may have been set back since, by a backup of its own.
    Raises Denied NOT_YOURS for a person without the right, INVALID_PARAMS without a reason,
    VERSION_MISMATCH where the branch is not at the expected commit, INVALID_TRANSITION for a
    repository that was not imported or whose source moved on, DRIVER_UNAVAILABLE where its folder
    is gone.
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
        if expected_commit not in ("", main.commit):
            raise Denied(stale(f"branch {repository.main}", "look at its commit, and push again"))
        if main.commit == repository.pushed_back and isinstance(caller, System):
            return main.commit
        require_still(caller)
        _record(repository, Action.REPOSITORY_PUSH_STARTED, main.commit, caller, reason, now)
    _push(repository, main.commit, seconds)
    with transaction.atomic():
        hold_lock("git repository", repository_id)
        known = Repository.objects.filter(id=repository_id).first()
        if known and _is_news(repository, known, main.commit):
            _record(known, Action.REPOSITORY_PUSHED_BACK, main.commit, caller, reason, now)
            known.pushed_back, known.push_attempts, known.push_due_at = main.commit, 0, None
            known.save(update_fields=["pushed_back", "push_attempts", "push_due_at"])
    return main.commit


def _is_news(repository: Repository, known: Repository, commit: str) -> bool:
    """Whether no other push, that began before or after this one, has recorded a later commit."""
    unmoved = known.pushed_back == repository.pushed_back
    bare = bare_of(repository.organisation)
    return unmoved or (known.pushed_back != commit and bare.is_ancestor(known.pushed_back, commit))


@needs_transaction
def _record(
    repository: Repository, action: Action, commit: str, caller: Actor, reason: str, now: datetime
) -> None:
    event = Event.by(
        caller,
        action,
        at=now,
        subject=f"repository:{repository.organisation.slug}",
        reason=reason,
        details={"from": repository.pushed_back, "commit": commit},
    )
    insert_event(event)  # also where the caller has left meanwhile: it was pushed


def _push(repository: Repository, commit: str, seconds: float) -> None:
    bare = bare_of(repository.organisation)
    words = [f"--git-dir={bare.folder}", "push", "--no-verify",
             f"--receive-pack={other_side(repository.source, 'receive-pack')}", "--",
             repository.source, f"{commit}:refs/heads/{repository.main}"]  # fmt: skip
    try:
        with turn(repository.organisation_id, repository.source), bare.quarantined() as apart:
            done = run_git(
                words,
                environment=environment_for(repository.source) | apart.objects,
                seconds=seconds,
                watch=partial(_require_little, apart),
            )
            if done.returncode != 0:
                # What it refused, and why; the rest is of no use without that. With --porcelain it
                # would be output, of which the other machine chooses the length.
                lines = done.stderr.splitlines(keepends=True)
                refused = b"".join(line for line in lines if line.startswith(b" ! "))
                raise GitFailed("push", done.returncode, refused + done.stderr)  # noqa: TRY301
    except GitFailed as problem:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"the other repository did not take the main branch: {problem.said[:500]}",
            "compare the two: if it has commits of its own, a person must merge the two",
            rule="the main branch is pushed back (spec: hands 22)",
        ) from problem


def _require_little(apart: BareRepository) -> None:
    """A server that git speaks WebDAV with has it fetch objects, at its will and without an end."""
    if apart.quarantine and usage_of(apart.quarantine)[0] > MOST_FETCHED:
        raise GitFailed("push", None, b"it sends more than it is asked for")


def push_back_due(now: datetime) -> int:
    """Push back what was merged where the organisation's setting says so; how many were pushed.

    One after the other in no order, each claimed first. A repository that cannot be read, or whose
    source is slow or takes nothing, delays its own pushes only: the next comes later and later.
    """
    return act_in_time(_claim, _push_back_in_time, now=now, seconds=BUDGET)


def _claim(now: datetime) -> Sequence[Repository]:
    """Take one repository whose main branch is to be pushed: no other process does meanwhile."""
    ahead = Branch.objects.filter(repository=OuterRef("pk"), name=OuterRef("main")).exclude(
        commit=OuterRef("pushed_back")
    )
    due = Repository.objects.filter(
        Exists(ahead),
        Q(push_due_at=None) | Q(push_due_at__lte=now),
        organisation__settings__repository_push=AFTER_MERGE,
        pk__in=Repository.objects.filter(moves__kind=MoveKind.MERGE).values("pk"),
    ).exclude(source="")
    with transaction.atomic():
        rows = due.select_related("organisation").order_by("?")
        taken = list(rows.select_for_update(skip_locked=True, of=("self",))[:1])
        for row in taken:
            row.push_attempts += 1
            row.push_due_at = now + CLAIMED_FOR
            row.save(update_fields=["push_attempts", "push_due_at"])
    return taken


def _push_back_in_time(repository: Repository, now: datetime) -> bool:
    caller = System(name="git", organisation_id=repository.organisation_id)
    earlier = repository.push_attempts - 1
    seconds = min(float(IMPORT_SECONDS), FIRST_SECONDS * 2.0 ** min(earlier, 10))
    begun = time.monotonic()
    try:
        push_back(
            repository_id=repository.id,
            reason=AFTER_MERGE,
            caller=caller,
            now=now,
            seconds=seconds,
        )
    except Denied as problem:
        log.warning(
            "repository_not_pushed_back",
            organisation=repository.organisation.slug,
            problem=str(problem),
        )
    else:
        return True
    took = time.monotonic() - begun
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(earlier, 10))
    wait = max(wait * random.uniform(0.5, 1.0), LEFT_ALONE * took)  # noqa: S311  spreads load
    held = Repository.objects.filter(id=repository.id, push_due_at=repository.push_due_at)
    held.update(push_due_at=now + timedelta(seconds=took + wait))
    return False
