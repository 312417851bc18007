"""The commit that a judge judges, as files that it can read and run (Spec: hands 27)."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from django.db.models.functions import Now

from contracts import judging
from contracts.queries import submissions_in_review
from contracts.store import contract_facts
from orgchart.models import Organisation
from orgchart.policy.protected import JUDGED
from toolbox.caller import Caller
from workspace.git.holding import held, lock_of
from workspace.git.places import objects_of
from workspace.git.repositories import bare_of
from workspace.git.worktree import AgentWorkTree, Uncommitted
from workspace.homes import FOLDER_MODE, make_home
from workspace.tree import agent_folder
from workspace.users import AgentUser, user_of


@dataclass(frozen=True, slots=True)
class SubmittedTree:
    """The files of a submitted commit, in a folder of the judge's home."""

    folder: Path
    inside: str
    commit: str


def submitted_tree(caller: Caller) -> SubmittedTree | None:
    """The latest submission that the caller may judge now, checked out; None where there is none.

    Git works in the sandbox meanwhile: open no transaction (Spec: hands 30).
    Of two calls at once one checks it out. Raises Denied ISOLATION_UNAVAILABLE, INVALID_TRANSITION,
    RATE_LIMITED.
    """
    commit = _commit_to_judge(caller)
    if not commit:
        return None
    organisation = Organisation.objects.get(id=caller.organisation_id)
    user = user_of(caller.agent.id)
    make_home(organisation.slug, caller.handle, user)
    folder = agent_folder(organisation.slug, caller.handle) / JUDGED / commit
    if not folder.is_dir():
        with held(lock_of(caller).with_suffix(".judged")):
            if not folder.is_dir():  # no other call of the judge was faster
                _check_out(folder, commit, user, objects_of(organisation))
                _remove_others(folder, _run_now(caller.agent.id))
    return SubmittedTree(folder, f"{JUDGED}/{commit}", commit)


def is_in_judged_commit(caller: Caller, path: str) -> bool:
    """Whether the commit that the caller judges now has this file; it is not checked out."""
    commit = _commit_to_judge(caller)
    if not commit:
        return False
    bare = bare_of(Organisation.objects.get(id=caller.organisation_id))
    return bool(bare.run("ls-tree", "--name-only", "-z", commit, "--", path))


def _commit_to_judge(caller: Caller) -> str:
    """The latest commit in review that the caller has not judged; if it judged all, the latest."""
    if not judging.is_judge(caller.agent, caller.policy):
        return ""
    judged = ""
    for each in submissions_in_review(caller.organisation_id, caller.agent.id):
        contract = contract_facts(each.contract, caller.policy)
        if not judging.is_judge_of(contract, caller.agent, caller.policy):
            continue
        if each.commit and not each.is_judged:
            return each.commit
        judged = judged or each.commit
    return judged


def _check_out(
    folder: Path, commit: str, user: AgentUser | None, objects: tuple[Path, ...]
) -> None:
    """Check a commit out next to its place, then move it there."""
    folder.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
    new = folder.parent / f".new-{secrets.token_hex(8)}"
    new.mkdir(mode=FOLDER_MODE)
    try:
        if user is not None:
            os.chown(new, user.uid, user.gid)
        AgentWorkTree(folder=new, user=user, objects=objects).check_out(
            "", commit, Uncommitted.KEEP
        )
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _remove_others(folder: Path, kept: Collection[str]) -> None:
    """Remove what else is next to a judged commit, but the commits that are kept.

    The caller holds the lock, so what is not whole there is of a call that was broken off.
    """
    for each in folder.parent.iterdir():
        if each != folder and each.name not in kept:
            shutil.rmtree(each, ignore_errors=True)


def _run_now(judge_id: int) -> list[str]:
    """The commits on which a judge's run is under way, or waits for its turn."""
    from workspace.models import Run

    present = Run.objects.filter(agent_id=judge_id, ended_at=None, ends_by__gt=Now())
    return list(present.values_list("commit", flat=True))


def last_run(caller: Caller, commit: str) -> str:
    """The digest of the log of the caller's last run on a commit that was not stopped, or ''."""
    from workspace.models import Run

    ended = Run.objects.filter(
        agent_id=caller.agent.id, commit=commit, stopped_for="", started_at__isnull=False
    ).exclude(output_sha256="")
    return ended.order_by("-id").values_list("output_sha256", flat=True).first() or ""
