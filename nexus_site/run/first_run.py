"""What a new installation needs once: tables, packs, people, keys. What exists is never touched."""

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import structlog
import yaml
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from pydantic import TypeAdapter, ValidationError

from core.actors import System
from core.database import fetch_row
from core.decision import Denied
from core.files import keep_names
from core.permissions import PeopleGroup
from ledger import keys as ledger_keys
from ledger.keys import HEAD, known_head
from nexus_site.console.group_rights import are_granted
from nexus_site.run import roles
from nexus_site.run.versions import is_earlier, later_migrations
from orgchart.keys import issue_key
from orgchart.models import Agent, Organisation
from orgchart.packs import load_pack
from orgchart.people.members import set_memberships
from orgchart.people.passwords import give_password
from orgchart.people.rules import EVERY
from workspace.git.repositories import create_repositories

log = structlog.get_logger(__name__)

UTF8 = "UTF8"
"""The only encoding of a database that keeps each character of each language."""
PEOPLE = {group.lower(): group for group in PeopleGroup}
"""The first user of each group, by name."""


class WrongDatabase(Exception):
    """This version does not start on the database."""


class DatabaseGone(WrongDatabase):
    """The database is empty, and this machine knows a ledger: a second company would be founded."""

    def __init__(self) -> None:
        super().__init__(
            f"The database is empty, but {settings.LEDGER_DIR / HEAD} knows a seal of its ledger. "
            "Is its disk mounted, or DATABASE_URL another? `manage.py restore` restores a backup. "
            f"To found new companies instead, move that file and {settings.NEXUS_KEYS} away: "
            "the agents' keys there would be replaced"
        )


class DatabaseOfLaterVersion(WrongDatabase):
    """A later version migrated the database: this one does not know all of its tables."""

    def __init__(self, migrations: Iterable[str]) -> None:
        super().__init__(
            f"The database is of a later version of NEXUS, which has {', '.join(migrations)}. "
            "Start that version, or undo these migrations with it (`manage.py migrate`)"
        )


class UnfitDatabase(WrongDatabase):
    """The database cannot keep every text: a mail in Chinese would answer 500."""

    def __init__(self, encoding: str) -> None:
        super().__init__(
            f"The database keeps texts as {encoding}, which lacks most characters. Create one with "
            "`CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0` and name it in DATABASE_URL; "
            "`manage.py backup` and `restore` bring into it what is in this one"
        )


class UnreadableKeys(Exception):
    """A file of agents' keys is damaged: a key added to it would replace all that it had."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} cannot be read as keys: put it back, or move it away and issue new keys "
            "with `manage.py issue_key`"
        )


def damaged_files() -> Iterator[str]:
    """Each file of keys, and of the ledger's head, that cannot be read, and what to do."""
    for path in sorted(settings.NEXUS_KEYS.glob("*.json")):
        try:
            read_keys(path)
        except UnreadableKeys as problem:
            yield str(problem)
    for read in (ledger_keys.known_head, ledger_keys.check_key_file):
        try:
            read()
        except ledger_keys.KeyMissing as problem:
            yield f"Nothing can be sealed: {problem}"


def migrate() -> bool:
    """Bring the tables and people's rights up to date; say whether there was anything to do.

    Raises UnfitDatabase, DatabaseGone, DatabaseOfLaterVersion. Spec: clocks 13, clocks 20.
    """
    (encoding,) = fetch_row("SHOW server_encoding")
    if encoding != UTF8:
        raise UnfitDatabase(encoding)
    executor = MigrationExecutor(connection)
    if later := later_migrations(executor.loader.applied_migrations, executor.loader):
        raise DatabaseOfLaterVersion(later)
    if not executor.loader.applied_migrations and known_head():
        raise DatabaseGone
    due = is_earlier(executor) or not are_granted()
    if due:
        call_command("migrate", verbosity=0, interactive=False)
    roles.grant_serving()
    return due


def load_missing_packs(*, packs: Path, now: datetime) -> list[str]:
    """Load the packs whose organisation does not exist yet; their names.

    A pack is only a beginning: an organisation that exists may have been edited since.
    Raises BadPack for a pack that is wrong.
    """
    loaded = []
    known = set(Organisation.objects.values_list("slug", flat=True))
    for folder in sorted(path.parent for path in packs.glob("*/organisation.yaml")):
        name = yaml.safe_load(folder.joinpath("organisation.yaml").read_text("utf-8"))
        if name["organisation"] not in known:
            load_pack(folder, caller=System(name="up", organisation_id=0), now=now)
            loaded.append(name["organisation"])
    return loaded


def create_missing_repositories(*, now: datetime) -> list[str]:
    """Create the git repository of each organisation that enables coding; their names.

    A missing git or a full disk is no reason not to start: the tools of git say what is missing.
    """
    try:
        return create_repositories(now=now)
    except (Denied, OSError) as problem:
        log.warning("repository_not_created", problem=str(problem))
        return []


def create_first_people(*, show: Callable[[Mapping[str, str]], None], now: datetime) -> None:
    """Create one person for each group if no person exists.

    They are members of every organisation, also of later ones. The passwords are not stored. They
    are shown before they become valid, so that none is ever valid and unknown: if this process is
    killed in between, the next start makes and shows others. Spec: people 26.
    """
    if User.objects.exists():
        return
    passwords = {username: secrets.token_urlsafe(12) for username in PEOPLE}
    with transaction.atomic():
        for username, group in PEOPLE.items():
            user = User.objects.create_user(username, password=passwords[username], is_staff=True)
            user.groups.add(Group.objects.get(name=group))
            if settings.PRODUCTION:  # elsewhere it is shown to the one who uses it
                give_password(user.pk)
            set_memberships(
                user=user,
                organisations={EVERY},
                caller=System(name="up", organisation_id=0),
                now=now,
            )
        show(passwords)


def issue_missing_keys(*, folder: Path, now: datetime) -> list[Path]:
    """Give a key to every active agent that never had one; the files that name them.

    A revoked key is a decision and is not undone. The file is written before the keys become
    valid, so that none is ever valid and unknown.
    """
    without = Agent.objects.filter(active=True, keys=None).select_related("organisation")
    written = []
    for organisation in Organisation.objects.filter(agents__in=without).distinct():
        path = folder / f"{organisation.slug}.json"
        with transaction.atomic():
            keys = _issue(without.filter(organisation=organisation), now=now)
            write_keys(path, keys)
        written.append(path)
    return written


def _issue(agents: Iterable[Agent], *, now: datetime) -> dict[str, str]:
    """A first key for each of these agents."""
    keys = {}
    for agent in agents:
        system = System(name="up", organisation_id=agent.organisation_id)
        keys[agent.handle] = issue_key(agent=agent, caller=system, now=now)
    return keys


def read_keys(path: Path) -> dict[str, str]:
    """The keys in a file, by handle. Raises UnreadableKeys."""
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes())
    except ValidationError:
        raise UnreadableKeys(path) from None


def write_keys(path: Path, keys: Mapping[str, str]) -> None:
    """Add keys to a file that only its owner reads: whole or not at all, at every moment.

    Raises UnreadableKeys where the file that is there is damaged.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    present = read_keys(path) if path.exists() else {}
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({**present, **keys}, file, indent=2, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    keep_names(path.parent)
