"""Cleaning repositories: objects that no branch and no draft needs are deleted (Spec: hands 32)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from contracts.vocabulary import FINAL_STATES
from orgchart.models import Organisation
from toolbox.scheduler import act_on_each
from workspace.git import importing
from workspace.git.models import Draft, Repository
from workspace.git.repositories import bare_of, drafts_of

KEPT = timedelta(days=14)
"""How long what nothing names is kept: a commit under way is not named yet."""


def collect_garbage(now: datetime) -> int:
    """Forget drafts of contracts that ended, and pack the repositories; how many were forgotten.

    The draft in an agent's work tree stays: git compares the files with it.
    """
    repositories = Repository.objects.select_related("organisation")
    return act_on_each(repositories, lambda row: _collect(row.organisation, now))


def _collect(organisation: Organisation, now: datetime) -> int:
    importing.remove_old(bare_of(organisation).folder)
    forgotten = _forget(organisation, now)
    merging = Draft.objects.filter(agent__organisation=organisation).exclude(merged_tree="")
    prune = "--no-prune" if merging.exists() else f"--prune={KEPT.days}.days.ago"
    drafts_of(organisation).run("gc", "--quiet", prune)
    bare_of(organisation).run("gc", "--quiet", "--no-prune")
    return forgotten


def _forget(organisation: Organisation, now: datetime) -> int:
    old = Draft.objects.filter(
        agent__organisation=organisation,
        checked_out=False,
        contract__state__in=FINAL_STATES,
        contract__closed_at__lt=now - KEPT,
    )
    drafts = drafts_of(organisation)
    for draft in old:
        with transaction.atomic():
            draft.delete()
            drafts.run("update-ref", "-d", "--", f"refs/drafts/{draft.contract_id}")
    return len(old)
