"""A repository before its row: created or cloned into a folder of its own, without a transaction.

The folder is named after the commit of its main branch, so that the row alone says which folder
belongs to it, whatever happened between the two.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from django.conf import settings

from core.database import is_lost
from core.decision import Code, Denied, refuse
from core.files import keep_names, keep_tree
from orgchart.models import Organisation
from orgchart.organisation_settings import merged, quota_of
from toolbox.space import require_space
from workspace.git import worktree
from workspace.git.bare_repository import (
    CREATING,
    QUARANTINE,
    BareRepository,
    Signature,
    create_bare,
    install,
)
from workspace.git.foreign_repository import environment_for, other_side, turn
from workspace.git.running import GitFailed, run_git
from workspace.homes import usage_of
from workspace.tree import repository_folder

MAIN = "main"
PREFIX, CLONING = "import-", ".import-"
LEFT_OVER = (
    f"{PREFIX}*.git", f"{CLONING}*", f"{CREATING}*", f"*.git/{QUARANTINE}*",
    "repository-*.replaced",
)  # fmt: skip
IMPORT_SECONDS = 300
KEPT = 86_400
"""Seconds after which a folder that no row took is deleted."""
MOST_NAME = 200
"""Characters of a branch's name, as the tables take it."""
SHA1 = 40
"""Characters of a commit's id in our other repositories, such as that of drafts."""
FIRST_MESSAGE = "Begin the repository"


@dataclass(frozen=True, slots=True)
class Fresh:
    """A repository that is ready to be taken: where it came from, and its main branch."""

    source: str
    main: str
    commit: str
    folder: Path

    def discard(self) -> None:
        """Delete its folder, if it was not taken; renamed first, so that it cannot be taken."""
        unused = self.folder.with_name(f"{CLONING}{uuid4().hex}")
        with suppress(FileNotFoundError):
            self.folder.rename(unused)
            shutil.rmtree(unused, ignore_errors=True)


@contextmanager
def prepared(organisation: Organisation, source: str, now: datetime) -> Iterator[Fresh]:
    """Clone `source`, or create a repository where it is ''. Open no transaction meanwhile.

    Where the block fails, nothing of it is left; else the caller has it taken or discards it. Where
    the connection was lost or the process is to end, a row may have taken it: it is left for
    `take`. Raises Denied DRIVER_UNAVAILABLE.
    """
    parent = repository_folder(organisation.slug).parent
    parent.mkdir(parents=True, exist_ok=True)
    made = parent / f"{CLONING}{uuid4().hex}"
    try:
        main, commit = _clone(made, source, organisation) if source else _create(made, now)
        keep_tree(made)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    ready = parent / f"{PREFIX}{commit}-{uuid4().hex}.git"
    fresh = Fresh(source, main, commit, made.rename(ready))
    try:
        keep_names(parent)
        yield fresh
    except Exception as problem:
        if not is_lost(problem):
            fresh.discard()
        raise


def has_prepared(place: Path) -> bool:
    """Whether any prepared repository waits next to this place."""
    return next(place.parent.glob(f"{PREFIX}*.git"), None) is not None


def take(place: Path, commit: str) -> None:
    """Move a prepared repository whose main branch is at this commit to its place, if there is one.

    What is at the place is moved aside.
    """
    for ready in place.parent.glob(f"{PREFIX}{commit}-*.git"):
        if place.exists():
            _put_aside(place)
        with suppress(FileNotFoundError):  # discarded meanwhile: another one is as good
            ready.rename(place)
            return


def _put_aside(place: Path) -> None:
    """Give what lies at the place another name next to it.

    With its main branch alone it was replaced, and is deleted after a day. Other branches are the
    work of agents, of a database that was lost: with them it is kept.
    """
    try:
        branches = BareRepository(place).run("for-each-ref", "--count=2").splitlines()
    except Denied:  # it is broken, and a person may mend it
        branches = []
    kind = "replaced" if len(branches) == 1 else "old"
    aside = place.with_name(f"repository-{uuid4().hex}.{kind}")
    place.rename(aside)
    os.utime(aside)


def remove_old(place: Path) -> None:
    """Delete what was not taken for a day next to this place: prepared repositories, and what a
    process that was killed has left.
    """
    for each in LEFT_OVER:
        for found in place.parent.glob(each):
            if found.stat().st_mtime < time.time() - KEPT:
                shutil.rmtree(found, ignore_errors=True)


def _create(folder: Path, now: datetime) -> tuple[str, str]:
    bare = create_bare(folder, MAIN)
    tree = bare.run("mktree").decode("ascii").strip()
    author = Signature(name="NEXUS", email="nexus@nexus.invalid", at=now)
    commit = bare.commit(tree, [], FIRST_MESSAGE, author)
    bare.set_ref(f"refs/heads/{MAIN}", commit, "")
    return MAIN, commit


def _clone(folder: Path, source: str, organisation: Organisation) -> tuple[str, str]:
    """Take in the default branch of another repository, and nothing else of it."""

    def watch() -> None:
        require_space()
        if usage_of(folder)[0] > settings.REPOSITORY_BYTES:
            raise _too_large("clone", f"it takes more than {settings.REPOSITORY_BYTES} bytes")

    words = [
        *("clone", "--quiet", "--bare", "--no-local", "--no-tags", "--single-branch"),
        "--reject-shallow",  # the repository of drafts would lack its oldest commits' parents
        *("--template=", "--config", "core.sharedRepository=0644"),
        *(f"--upload-pack={other_side(source, 'upload-pack')}", "--", source, str(folder)),
    ]
    try:
        folder.mkdir(mode=0o700)
        with turn(organisation.id, source):
            done = run_git(
                words, environment=environment_for(source), seconds=IMPORT_SECONDS, watch=watch
            )
            watch()
            if done.returncode != 0:
                raise GitFailed("clone", done.returncode, done.stderr)  # noqa: TRY301  translated
        bare = BareRepository(folder)
        main = os.fsdecode(bare.run("symbolic-ref", "--short", "HEAD")).strip()
        if len(main) > MOST_NAME or not main.isprintable() or main.startswith("-"):
            raise GitFailed("clone", 0, b"its default branch's name is long, hidden or an option")  # noqa: TRY301
        commit = bare.commit_at(f"refs/heads/{main}")
        if not commit:
            raise GitFailed("clone", 0, b"it has no commit on its default branch")  # noqa: TRY301
        if len(commit) != SHA1:
            raise GitFailed("clone", 0, b"its commits have SHA-256 names, not SHA-1")  # noqa: TRY301
        _require_room(bare, commit, organisation)
        _require_readable(bare, commit)
        bare.run("remote", "remove", "origin")
        install(bare)
    except GitFailed as problem:
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            f"the repository cannot be imported: {problem}",
            "check that this machine reaches it and that its default branch has a commit",
            rule="a repository is imported by the control plane (spec: hands 22)",
            driver="git repository",
        ) from problem
    return main, commit


def _require_room(bare: BareRepository, commit: str, organisation: Organisation) -> None:
    """The files of a commit fit into the home of each agent, and can be written there. Raises
    GitFailed.
    """
    values = merged(organisation.settings)
    most = quota_of(values, "workspace_bytes"), quota_of(values, "workspace_files")
    found, files = bare.size(commit, *most, largest=worktree.LIMITS.file)
    if found > most[0] or files > most[1]:
        limits = f"{most[0]} bytes, {most[1]} files and folders"
        raise _too_large("ls-tree", f"its files do not fit into an agent's home: {limits}")


def _require_readable(bare: BareRepository, commit: str) -> None:
    """Git makes files of a commit. Raises GitFailed.

    It checks what comes in a pack by itself, and not what a web server has as single files.
    """
    index = bare.folder / "index"
    bare.run("read-tree", commit, environment={"GIT_INDEX_FILE": str(index)})
    index.unlink(missing_ok=True)


def _too_large(verb: str, problem: str) -> GitFailed:
    return GitFailed(verb, 0, problem.encode())
