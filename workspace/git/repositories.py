"""The bare repository of an organisation: created, imported, kept as its rows say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from core.actions import Action
from core.actors import Actor, System
from core.database import hold_lock, needs_transaction, planned_for_values
from core.decision import Code, refuse
from ledger.services import record
from orgchart.models import Organisation
from orgchart.organisation_settings import enabled_modes, merged
from orgchart.policy.vocabulary import ToolMode
from workspace.git import importing
from workspace.git.bare_repository import BareRepository, create_bare
from workspace.git.importing import Fresh
from workspace.git.models import Branch, BranchMove, Draft, MoveKind, Repository
from workspace.tree import repository_folder

DRAFTS = "drafts.git"


def bare_of(organisation: Organisation) -> BareRepository:
    """The organisation's bare repository."""
    return BareRepository(repository_folder(organisation.slug))


def drafts_of(organisation: Organisation) -> BareRepository:
    """The repository of commits that agents made and perhaps not pushed."""
    folder = repository_folder(organisation.slug)
    return BareRepository(folder.with_name(DRAFTS), others=(folder,))


def drafts_in(organisation: Organisation) -> QuerySet[Draft]:
    """What the agents of an organisation made; look at it inside `planned_for_values()`.

    A draft names its agent alone. Asked for each agent by its id, PostgreSQL knows how few drafts
    they have; from a join it would read the drafts of all organisations.
    """
    agents = list(organisation.agents.values_list("id", flat=True))
    of_them = RawSQL("workspace_draft.agent_id = ANY(%s)", [agents], BooleanField())
    return Draft.objects.filter(of_them)


def create_repositories(*, now: datetime) -> list[str]:
    """Create the repository of each organisation that enables coding and has none; their names.

    One that is imported waits for the first call of git: its source may not answer for minutes.
    """
    made = []
    for organisation in Organisation.objects.order_by("id"):
        if ToolMode.CODING not in enabled_modes(organisation.settings) or _source_of(organisation):
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
    while found is None:
        with importing.prepared(organisation, _source_of(organisation), now) as fresh:
            found = _insert_once(organisation, fresh, caller, now)
        _take(organisation, fresh)
    put_in_place(found)
    require_folder(organisation)
    return found


def require_folder(organisation: Organisation) -> None:
    """Raise Denied DRIVER_UNAVAILABLE where the folder of the repository is gone."""
    if not bare_of(organisation).folder.is_dir():
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            f"the folder of the repository of {organisation.slug} is missing",
            "ask the people who run this installation to restore it from a backup",
            rule="the repository is on this machine",
            driver="git repository",
        )


def _insert_once(
    organisation: Organisation, fresh: Fresh, caller: Actor, now: datetime
) -> Repository | None:
    """The repository that is there or is inserted now; None where the setting changed meanwhile."""
    with transaction.atomic():
        hold_lock("git organisation", organisation.id)
        found = Repository.objects.filter(organisation=organisation).first()
        if found is None and _source_of(organisation) == fresh.source:
            found = _insert_repository(organisation, fresh, caller, now)
    return found


def _take(organisation: Organisation, fresh: Fresh) -> None:
    """Move a prepared folder to its place if a row took it, else delete it."""
    found = Repository.objects.filter(organisation=organisation).first()
    if found is not None:
        put_in_place(found)
    fresh.discard()


def _source_of(organisation: Organisation) -> str:
    """What the setting names now; '' for a repository that is created here."""
    stored = Organisation.objects.values_list("settings", flat=True).get(id=organisation.id)
    return str(merged(stored)["repository"])


@needs_transaction
def _insert_repository(
    organisation: Organisation, fresh: Fresh, caller: Actor, now: datetime
) -> Repository:
    """Insert what a prepared repository holds; `put_in_place` moves its folder after the commit."""
    repository = Repository.objects.create(
        organisation=organisation,
        main=fresh.main,
        source=fresh.source,
        pushed_back=fresh.commit if fresh.source else "",
        created_at=now,
    )
    Branch.objects.create(repository=repository, name=fresh.main, commit=fresh.commit)
    BranchMove.objects.create(
        organisation=organisation,
        repository=repository,
        branch=fresh.main,
        kind=MoveKind.IMPORT if fresh.source else MoveKind.CREATE,
        new=fresh.commit,
        by=caller.actor,
        at=now,
    )
    record(
        Action.REPOSITORY_IMPORTED if fresh.source else Action.REPOSITORY_CREATED,
        by=caller,
        at=now,
        subject=f"repository:{organisation.slug}",
        details={"main": fresh.main, "commit": fresh.commit, "source": fresh.source},
    )
    return repository


def put_in_place(repository: Repository) -> None:
    """Move the prepared folder of a repository to its place, where it is not there yet.

    Its row was committed before; where the process ended in between, the next call does it. A
    folder in which the main branch's commit is stays: it is this repository.
    """
    organisation = repository.organisation
    bare, drafts = bare_of(organisation), drafts_of(organisation)
    if not importing.has_prepared(bare.folder):
        return
    with transaction.atomic():
        hold_lock("git organisation", organisation.id)
        main = repository.branches.filter(name=repository.main).first()
        if main is None or (bare.folder.is_dir() and bare.succeeds("cat-file", "-e", main.commit)):
            return
        if not drafts.folder.exists():
            create_bare(drafts.folder, repository.main)
        importing.take(bare.folder, main.commit)


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


@contextmanager
def changed_source(
    *, organisation: Organisation, source: str, caller: Actor, now: datetime
) -> Iterator[Callable[[], None]]:
    """Take the repository that the setting names in place of one that no agent works in.

    It is imported first, without a transaction; the yielded function records that, in the
    transaction of the setting. Raises Denied, and so does that function: INVALID_TRANSITION where
    agents have begun work or the repository changed meanwhile, DRIVER_UNAVAILABLE where the import
    fails; the setting is not changed then.
    """
    if replaceable(organisation, source) is None:
        yield partial(_require_unchanged, organisation, source)
        return
    with importing.prepared(organisation, source, now) as fresh:
        yield partial(_replace, organisation, fresh, caller, now)
    _take(organisation, fresh)


@needs_transaction
def _replace(organisation: Organisation, fresh: Fresh, caller: Actor, now: datetime) -> None:
    hold_lock("git organisation", organisation.id)
    found = replaceable(organisation, fresh.source)
    if found is not None:
        found.delete()
        _insert_repository(organisation, fresh, caller, now)


@needs_transaction
def _require_unchanged(organisation: Organisation, source: str) -> None:
    """Nothing was imported, so there must be nothing to replace. Raises Denied."""
    hold_lock("git organisation", organisation.id)
    if replaceable(organisation, source) is not None:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"the repository of {organisation.slug} was created meanwhile",
            "set the setting again",
            rule="a repository is imported by the control plane (spec: hands 22)",
        )


def replaceable(organisation: Organisation, source: str) -> Repository | None:
    """The repository that has to be replaced by this source; None where there is none.

    Raises Denied INVALID_TRANSITION where agents have pushed to it, or have a branch of it checked
    out or committed to: what they began is made of its commits.
    """
    found = Repository.objects.filter(organisation=organisation).exclude(source=source).first()
    if found is None:
        return None
    moved = found.moves.exclude(kind__in=[MoveKind.CREATE, MoveKind.IMPORT])
    with planned_for_values():
        is_begun = moved.exists() or drafts_in(organisation).exists()
    if is_begun:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"agents have begun work in the repository of {organisation.slug}, so it is not "
            "replaced",
            "keep it, or load the other repository into an organisation of its own",
            rule="a repository with work in it is not replaced (spec: hands 22)",
        )
    return found
