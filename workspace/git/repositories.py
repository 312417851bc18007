"""The bare repository of an organisation: created, imported, kept as its rows say, pushed back."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from django.db import connection, transaction

from core.actions import Action
from core.actors import Actor, System
from core.database import needs_transaction
from core.decision import Code, refuse
from ledger.services import record
from orgchart.models import Organisation
from orgchart.orgsettings import enabled_modes, merged
from orgchart.policy.vocabulary import ToolMode
from workspace.git.control import (
    BareRepository,
    GitFailed,
    Signature,
    create_bare,
    install,
    run_git,
)
from workspace.git.models import Branch, BranchMove, MoveKind, Repository
from workspace.tree import repository_folder

MAIN = "main"
DRAFTS = "drafts.git"
IMPORT_SECONDS = 300
FIRST_MESSAGE = "Begin the repository"


def bare_of(organisation: Organisation) -> BareRepository:
    """The organisation's bare repository."""
    return BareRepository(repository_folder(organisation.slug))


def drafts_of(organisation: Organisation) -> BareRepository:
    """The repository of commits that agents made and perhaps not pushed."""
    folder = repository_folder(organisation.slug)
    return BareRepository(folder.with_name(DRAFTS), others=(folder,))


@needs_transaction
def lock(what: str, row_id: int) -> None:
    """Hold one lock of git until the transaction ends: of an agent's work tree or a repository."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"git {what} {row_id}"]
        )


def ensure_repositories(*, now: datetime) -> list[str]:
    """Create the repository of each organisation that enables coding and has none; their names."""
    made = []
    for organisation in Organisation.objects.order_by("id"):
        if ToolMode.CODING not in enabled_modes(organisation.settings):
            continue
        if not Repository.objects.filter(organisation=organisation).exists():
            caller = System(name="git", organisation_id=organisation.id)
            ensure_repository(organisation=organisation, caller=caller, now=now)
            made.append(organisation.slug)
    return made


def ensure_repository(*, organisation: Organisation, caller: Actor, now: datetime) -> Repository:
    """The organisation's repository, created or imported where it is not there yet.

    Raises Denied DRIVER_UNAVAILABLE where git is missing, the import fails, or the folder is gone.
    """
    found = Repository.objects.filter(organisation=organisation).first()
    if found is None:
        with transaction.atomic():
            lock("organisation", organisation.id)
            found = Repository.objects.filter(organisation=organisation).first()
            if found is None:
                source = merged(organisation.settings)["repository"]
                found = _insert_repository(organisation, source, caller, now)
    if not bare_of(organisation).folder.is_dir():
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            f"the folder of the repository of {organisation.slug} is missing",
            "who runs the installation restores it from a backup",
            rule="the repository is on this machine",
            driver="git repository",
        )
    return found


@needs_transaction
def _insert_repository(
    organisation: Organisation, source: str, caller: Actor, now: datetime
) -> Repository:
    bare, drafts = bare_of(organisation), drafts_of(organisation)
    fresh = bare.folder.with_name(f"repository-{uuid4().hex}.git")
    main, commit = _import(fresh, source) if source else _create(fresh, now)
    if bare.folder.exists():  # replaced, or of a transaction or database that was lost: kept aside
        bare.folder.rename(bare.folder.with_name(f"repository-{uuid4().hex}.old"))
    fresh.rename(bare.folder)
    if not drafts.folder.exists():
        create_bare(drafts.folder, main)
    repository = Repository.objects.create(
        organisation=organisation,
        main=main,
        source=source,
        pushed_back=commit if source else "",
        created_at=now,
    )
    Branch.objects.create(repository=repository, name=main, commit=commit)
    kind = MoveKind.IMPORT if source else MoveKind.CREATE
    BranchMove.objects.create(
        repository=repository, branch=main, kind=kind, new=commit, by=caller.actor, at=now
    )
    record(
        Action.REPOSITORY_IMPORTED if source else Action.REPOSITORY_CREATED,
        by=caller,
        at=now,
        subject=f"repository:{organisation.slug}",
        details={"main": main, "commit": commit, "source": source},
    )
    return repository


def _create(folder: Path, now: datetime) -> tuple[str, str]:
    bare = create_bare(folder, MAIN)
    tree = bare.run("mktree").decode("ascii").strip()
    author = Signature(name="NEXUS", email="nexus@nexus.invalid", at=now)
    commit = bare.commit(tree, [], FIRST_MESSAGE, author)
    bare.set_ref(f"refs/heads/{MAIN}", commit, "")
    return MAIN, commit


def _import(folder: Path, source: str) -> tuple[str, str]:
    """Take in the default branch of another repository, and nothing else of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".import-", dir=folder.parent))
    words = [
        *("clone", "--quiet", "--bare", "--no-local", "--no-tags", "--single-branch"),
        *("--template=", "--config", "core.sharedRepository=0644"),
    ]
    try:
        done = run_git(
            [*words, "--", source, str(made)], environment=outside(), seconds=IMPORT_SECONDS
        )
        if done.returncode != 0:
            raise GitFailed("clone", done.returncode, done.stderr)  # noqa: TRY301  cleaned below
        bare = BareRepository(made)
        main = bare.run("symbolic-ref", "--short", "HEAD").decode("utf-8").strip()
        commit = bare.commit_at(f"refs/heads/{main}")
        if not commit:
            raise GitFailed("clone", 0, b"it has no commit on its default branch")  # noqa: TRY301
        bare.run("remote", "remove", "origin")
        install(bare)
        made.rename(folder)
    except GitFailed as problem:
        shutil.rmtree(made, ignore_errors=True)
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            f"the repository cannot be imported: {problem}",
            "check that this machine reaches it and that its default branch has a commit",
            rule="a repository is imported by the control plane (spec: hands 22)",
            driver="git repository",
        ) from problem
    return main, commit


def outside() -> dict[str, str]:
    """What git needs to reach another host: the server's home for its keys, and the proxies."""
    proxies = {name: os.environ[name] for name in ("https_proxy", "HTTPS_PROXY", "no_proxy")
               if name in os.environ}  # fmt: skip
    return {
        **proxies,
        "HOME": os.environ.get("HOME", "/nonexistent"),
        "GIT_ALLOW_PROTOCOL": "file:https:ssh",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "protocol.https.allow",
        "GIT_CONFIG_VALUE_0": "always",
        "GIT_CONFIG_KEY_1": "protocol.ssh.allow",
        "GIT_CONFIG_VALUE_1": "always",
    }


@needs_transaction
def branch_row(repository: Repository, name: str) -> Branch | None:
    """A branch, locked, with its ref where the row says: a broken-off move is undone.

    The caller holds the repository's lock.
    """
    row = Branch.objects.select_for_update().filter(repository=repository, name=name).first()
    bare = bare_of(repository.organisation)
    ref = f"refs/heads/{name}"
    if row is not None and bare.commit_at(ref) != row.commit:
        bare.set_ref(ref, row.commit)
    elif row is None and bare.commit_at(ref):
        bare.run("update-ref", "-d", "--", ref)
    return row


@needs_transaction
def change_source(*, organisation: Organisation, source: str, caller: Actor, now: datetime) -> None:
    """Take the repository that the setting names in place of one that no agent has pushed to.

    Raises Denied INVALID_TRANSITION where agents have pushed, DRIVER_UNAVAILABLE where the import
    fails; the setting is not changed then.
    """
    lock("organisation", organisation.id)
    found = Repository.objects.filter(organisation=organisation).first()
    if found is None or found.source == source:
        return
    if found.moves.exclude(kind__in=[MoveKind.CREATE, MoveKind.IMPORT]).exists():
        raise refuse(
            Code.INVALID_TRANSITION,
            f"agents have pushed to the repository of {organisation.slug}, so it is not replaced",
            "keep it, or load the other repository into an organisation of its own",
            rule="a repository with work in it is not replaced (spec: hands 22)",
        )
    found.delete()
    _insert_repository(organisation, source, caller, now)
