"""Cleaning repositories: objects that no branch and no draft needs are deleted (Spec: hands 32)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from contracts.vocabulary import FINAL_STATES
from core.database import planned_for_values
from orgchart.models import Organisation
from toolbox.scheduler import act_in_time
from workspace.git import importing
from workspace.git.models import Repository
from workspace.git.repositories import bare_of, drafts_in, drafts_of, put_in_place

KEPT = timedelta(days=14)
"""How long what nothing names is kept: a commit under way is not named yet."""
EVERY, AGAIN = timedelta(days=1), timedelta(hours=1)
"""When a repository that was packed is due again, and one that failed."""
BUDGET = 30.0
"""Seconds after which a run leaves the rest to the next: other jobs wait for its thread."""


def collect_garbage(now: datetime) -> int:
    """Forget drafts of contracts that ended, and pack the repositories; how many were forgotten.

    Each repository has its own time: the others are not packed again with one that failed. The
    draft in an agent's work tree stays: git compares the files with it.
    """
    return act_in_time(
        lambda _: _claim(now), lambda row, _: _collect(row, now), now=now, seconds=BUDGET
    )


def _claim(now: datetime) -> Sequence[Repository]:
    """Take one repository that is due: another process takes it in an hour, should this one end."""
    due = Repository.objects.filter(Q(packed_at=None) | Q(packed_at__lte=now - EVERY))
    with transaction.atomic():
        rows = due.select_related("organisation").order_by("?")
        taken = list(rows.select_for_update(skip_locked=True, of=("self",))[:1])
        for row in taken:
            row.packed_at = now - EVERY + AGAIN
            row.save(update_fields=["packed_at"])
    return taken


def _collect(repository: Repository, now: datetime) -> int:
    organisation = repository.organisation
    pushed, drafts = bare_of(organisation), drafts_of(organisation)
    put_in_place(repository)
    importing.remove_old(pushed.folder)
    for each in (pushed, drafts):
        each.remove_left_objects()
    forgotten = _forget(organisation, now)
    with planned_for_values():
        is_merging = drafts_in(organisation).exclude(merged_tree="").exists()
    prune = "--no-prune" if is_merging else f"--prune={KEPT.days}.days.ago"
    drafts.run("gc", "--quiet", prune)
    pushed.run("gc", "--quiet", "--no-prune")
    Repository.objects.filter(id=repository.id).update(packed_at=now)
    return forgotten


def _forget(organisation: Organisation, now: datetime) -> int:
    ended = drafts_in(organisation).filter(
        checked_out=False,
        contract__state__in=FINAL_STATES,
        contract__closed_at__lt=now - KEPT,
    )
    with planned_for_values():
        old = list(ended)
    drafts = drafts_of(organisation)
    for draft in old:
        with transaction.atomic():
            draft.delete()
            drafts.run("update-ref", "-d", "--", f"refs/drafts/{draft.contract_id}")
    return len(old)
