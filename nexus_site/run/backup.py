"""A copy of an installation: the database by PostgreSQL's own tools, the company tree, the keys."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from pydantic import TypeAdapter, ValidationError

from core.files import keep_names, place
from documents.root import forget_root, root
from ledger.chain_end import last_seal
from ledger.keys import KeyMissing, trusted
from ledger.seal_format import write_public
from nexus_site.run import roles
from nexus_site.run.alone import alone_on_database
from nexus_site.run.archives import UNFINISHED, is_empty, pack, unpacked
from nexus_site.run.postgres import Cluster, all_binaries, locked
from nexus_site.run.shim import end_with_parent
from nexus_site.run.versions import later_migrations

DATABASE, TREE, MANIFEST = "database.dump", "company.tar", "manifest.json"
SESSIONS = "django_session"  # their keys open people's pages: who has a copy must not have them
BEGUN = "restore.begun"
"""Under NEXUS_VAR while a restore is under way: the SHA-256 of the backup's manifest."""
LOCK = "copy.lock"
"""Under NEXUS_VAR: of two copies that begin at once, one waits for the other."""
FORMAT = 1
TRANSACTION_TIMEOUT = 17  # what pg_restore sets from this version on, and earlier servers refuse

HOLDS_TABLES = "the database holds tables: restore into an empty one"
OR_IS_RESTORED = (
    ". If you restored this backup here and that was killed, nothing is left to do: "
    "`manage.py ledger verify` says how far it reaches"
)


class CannotCopy(Exception):
    """A backup or a restore cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds: SHA-256 of each file, the last seal when it began, and public keys.

    With the keys of a lost `LEDGER_DIR` the ledger would be lost, too: no seal could be verified.
    """

    format: int
    at: str
    files: dict[str, str]
    seal: tuple[int, str] | None
    public_keys: list[str] = field(default_factory=list)


def back_up(folder: Path, *, keys: Path | None, now: datetime) -> Manifest:
    """Copy the installation into a new folder while it works; the keys into a file elsewhere.

    The database is one snapshot. The company tree is read after it: its files follow the rows, so
    that whatever the rows name is there. Another backup waits until this one ends. Raises
    CannotCopy; then the folder is removed.
    """
    with locked(settings.NEXUS_VAR / LOCK):
        return _back_up(folder, keys=keys, now=now)


def _back_up(folder: Path, *, keys: Path | None, now: datetime) -> Manifest:
    if (settings.NEXUS_VAR / BEGUN).exists():
        raise CannotCopy(
            "a restore was ended before its files were in place, and a copy would lack them: "
            "run the same `manage.py restore` again"
        )
    if folder.exists():
        raise CannotCopy(f"{folder} exists: name a folder that does not")
    if keys is not None and keys.exists():
        raise CannotCopy(
            f"{keys} exists: name a new file, or remove it if the backup that wrote it was killed"
        )
    if keys is not None and folder.resolve() in keys.resolve().parents:
        raise CannotCopy(f"{keys} must be outside {folder}: keep keys apart")
    with _new_folder(folder) as (part, manifest), _packed_keys(keys):
        head = last_seal()
        options = ["--format=custom", "--no-owner", "--no-privileges"]
        _run("pg_dump", [*options, f"--exclude-table-data={SESSIONS}", "--file"], part)
        pack(part / TREE, {"company": root()})
        made = Manifest(
            format=FORMAT,
            at=now.isoformat(),
            files={name: digest_of(part / name) for name in (DATABASE, TREE)},
            seal=(head.number, head.digest.hex()) if head else None,
            public_keys=_public_keys(),
        )
        manifest.write(json.dumps(asdict(made), indent=2) + "\n")
        manifest.flush()
        os.fsync(manifest.fileno())
    return made


def _public_keys() -> list[str]:
    """Those that are trusted; where none can be read, a copy is wanted all the more."""
    try:
        return [write_public(public) for public in trusted().values()]
    except (KeyMissing, OSError, ValueError):
        return []


@contextmanager
def _packed_keys(path: Path | None) -> Iterator[None]:
    """Pack the keys as they are now, and name the file at the end.

    So the seal that they know as the last is in the database that is copied after them.
    """
    if path is None:
        yield
        return
    early = path.with_name(f".{path.name}.early")
    try:
        pack(early, _key_places())
        yield
        early.rename(path)
        keep_names(path.parent)
    finally:
        early.unlink(missing_ok=True)


@contextmanager
def _new_folder(folder: Path) -> Iterator[tuple[Path, IO[str]]]:
    """A folder that gets its name when it is whole and on the disk, and its empty manifest.

    The manifest is locked until the end: another installation's backup may have the same name.
    Raises CannotCopy; what another backup writes is not touched.
    """
    part = folder.with_name(f"{folder.name}.part")
    with ExitStack() as held:
        if part.exists():
            with suppress(FileNotFoundError):
                held.enter_context(_locked_manifest(part, "r"))
            shutil.rmtree(part)  # of a backup that was killed
        try:
            part.mkdir(mode=0o700, parents=True)
            manifest = held.enter_context(_locked_manifest(part, "x"))
        except FileExistsError:
            raise _written_by_another(part) from None
        try:
            yield part, manifest
            keep_names(part)
            part.rename(folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        keep_names(folder.parent)


@contextmanager
def _locked_manifest(part: Path, mode: str) -> Iterator[IO[str]]:
    """Open the manifest and lock it. Raises CannotCopy if another backup holds or removed it."""
    path = part / MANIFEST
    with path.open(mode, encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = path.stat().st_ino == os.fstat(file.fileno()).st_ino
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        if not is_ours:
            raise _written_by_another(part)
        yield file


def _written_by_another(part: Path) -> CannotCopy:
    return CannotCopy(
        f"another backup writes {part}: wait until it ends, or name another folder. "
        "Give each installation a folder of its own for its backups"
    )


def restore(folder: Path, *, keys: Path | None) -> Manifest:
    """Put a backup into an empty database and an empty company tree, as the owner.

    Nothing that exists is overwritten. The database is restored whole or not at all, and the files
    are there before it, so that a full disk leaves nothing half done. Where a restore of the same
    backup was killed after it filled the database, this one does the rest. Another restore waits
    until this one ends, and so does a start, which would found a company. Raises CannotCopy.
    """
    with locked(settings.NEXUS_VAR / LOCK), alone_on_database():
        return _restore(folder, keys=keys)


def _restore(folder: Path, *, keys: Path | None) -> Manifest:
    manifest = read_manifest(folder)
    _require_version(folder)
    tree, begun = settings.WORKSPACE_ROOT, settings.NEXUS_VAR / BEGUN
    is_filled, name = _has_tables(), digest_of(folder / MANIFEST)
    if is_filled and not (begun.exists() and begun.read_text("ascii") == name):
        raise CannotCopy(HOLDS_TABLES + ("" if begun.exists() else OR_IS_RESTORED))
    if not is_filled and not is_empty(tree):
        raise CannotCopy(f"{tree} is not empty: move it away first")
    places = _key_places()
    secret = places["secret_key"]  # there is one: this process made it, if none was in use
    places["secret_key"] = restored = secret.with_name(f"{secret.name}{UNFINISHED}")
    try:
        with ExitStack() as kept:
            if keys is not None:
                kept.enter_context(unpacked(keys, places))
            kept.enter_context(unpacked(folder / TREE, {"company": tree}))
            if not is_filled:
                begun.parent.mkdir(parents=True, exist_ok=True)
                place(begun, name.encode(), replace=True)
                _fill_database(folder)
    except (tarfile.TarError, ValueError, OverflowError) as problem:
        raise CannotCopy(f"an archive cannot be read: {problem}") from None
    if restored.exists():
        restored.replace(secret)
    forget_root()
    _renew_statistics()
    roles.grant_serving()
    os.sync()  # the files too, as the rows are: a machine that ends now loses none
    begun.unlink()
    return manifest


def _require_version(folder: Path) -> None:
    """Raise CannotCopy for a dump that is none of ours, or of a later version than this one."""
    rows = _run("pg_restore", ["--data-only", "--table=django_migrations", "--file=-"], folder)
    applied = {(line[1], line[2]) for row in rows.splitlines() if len(line := row.split("\t")) == 4}
    if not any(room == "ledger" for room, _ in applied):
        raise CannotCopy(f"{folder / DATABASE} is no database of NEXUS: name another folder")
    if later := later_migrations(applied, MigrationLoader(None)):
        raise CannotCopy(
            f"{folder} was made by a later version of NEXUS, which has {', '.join(later)}: "
            "restore it with that version"
        )


def _fill_database(folder: Path) -> None:
    """Restore the dump; the mark of the begun restore goes only if the database is empty again.

    Where the connection was lost at the commit, the tables may be there and the files are not.
    """
    options = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
    try:
        _run("pg_restore", [*options, "--dbname", connection.settings_dict["NAME"]], folder)
    except CannotCopy:
        connection.close()  # its server may have ended
        with suppress(DatabaseError):
            if not _has_tables():
                (settings.NEXUS_VAR / BEGUN).unlink()
        raise


def _renew_statistics() -> None:
    """Without them the first calls read whole mailboxes, until PostgreSQL's own work comes by."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def read_manifest(folder: Path) -> Manifest:
    """What a backup says of itself, compared with its files. Raises CannotCopy.

    It says nothing where other users can write: the dump is SQL that runs as the owner.
    """
    for path in (folder, *(folder / name for name in (MANIFEST, DATABASE, TREE))):
        if not path.exists():
            continue
        if path != folder and not path.is_file():
            raise CannotCopy(f"{folder} is no backup: {path} is no file")
        found = path.stat()
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise CannotCopy(
                f"other users can write to {path}, and what it holds would run as the database's "
                f"owner; if you trust it, make it your own: chown, and chmod go-w {path}"
            )
    try:
        manifest = TypeAdapter(Manifest).validate_json((folder / MANIFEST).read_bytes())
    except OSError as problem:
        raise CannotCopy(f"{folder} is no backup: {problem}") from None
    except ValidationError:
        raise CannotCopy(f"{folder} is no backup: its {MANIFEST} is not as written") from None
    if manifest.format != FORMAT:
        raise CannotCopy(f"{folder} has format {manifest.format}; this version reads {FORMAT}")
    for name in (DATABASE, TREE):
        if not (folder / name).is_file() or digest_of(folder / name) != manifest.files.get(name):
            raise CannotCopy(f"{folder / name} is not the file that was written: copy it again")
    return manifest


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key_places() -> dict[str, Path]:
    """What a backup of keys holds; settings from the environment are kept by the operator."""
    secret = settings.NEXUS_VAR / "secret_key"
    return {"ledger": settings.LEDGER_DIR, "agents": settings.NEXUS_KEYS, "secret_key": secret}


def _has_tables() -> bool:
    with connection.cursor() as cursor:
        return bool(connection.introspection.table_names(cursor))


def _run(program: str, options: Sequence[str], folder: Path) -> str:
    """Run one of PostgreSQL's programs on the backup's dump; its output. No argument is a password.

    It ends with this process: what goes on alone would fill a database that has no files.
    """
    found = _program(program)
    done = subprocess.run(
        [found, *options, str(folder / DATABASE)],
        preexec_fn=partial(end_with_parent, os.getpid()),
        env=os.environ | _environment(connection.settings_dict),
        stdin=subprocess.DEVNULL,
        umask=0o077,  # the copy stays private where its folder is not copied with it
        capture_output=True,
        text=True,
        errors="replace",  # a damaged dump is quoted as it is
        check=False,
    )
    if done.returncode != 0:
        raise CannotCopy(f"{program} failed: {_reason_in(done.stderr)}")
    return done.stdout


def _reason_in(said: str) -> str:
    """What a program of PostgreSQL says of its failure, without the SQL, which hides it."""
    sql = re.compile(r"^(?:pg_\w+: detail: )?(?:Query|Command) was: ", re.MULTILINE)
    return sql.split(said)[0].strip()


def _program(name: str) -> str:
    """The program, of this machine or the wheel, of the server's version or else the next later.

    Raises CannotCopy where none can write to this server what it reads from it.
    """
    if not settings.DATABASE_URL:
        return str(Cluster.under(settings.NEXUS_VAR).programs / name)
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    programs = filter(None, [shutil.which(name), *(str(each / name) for each in all_binaries())])
    fitting = [found for found in programs if _fits(_major(found), server)]
    if not fitting:
        raise CannotCopy(
            f"the server is PostgreSQL {server}: install its {name} and put it on the PATH"
        )
    return min(fitting, key=_major)


def _fits(program: int, server: int) -> bool:
    """Whether a program of one major version can copy a server of another.

    A newer program can, unless it sets transaction_timeout, which an older server does not know.
    """
    return program == server or program > server >= TRANSACTION_TIMEOUT


def _major(program: str) -> int:
    """The major version of one of PostgreSQL's programs: 15 of `pg_dump (PostgreSQL) 15.20`."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = said.stdout.partition("(PostgreSQL) ")[2].partition(".")[0]
    return int(version) if version.isdigit() else 0


def _environment(database: Mapping[str, Any]) -> dict[str, str]:
    named = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    found = {name: str(database[key]) for name, key in named.items() if database.get(key)}
    kept = ("sslmode", "sslrootcert", "sslcert", "sslkey")
    options = database.get("OPTIONS", {})
    found |= {f"PG{name.upper()}": str(options[name]) for name in kept if name in options}
    return found | {"PGDATABASE": str(database["NAME"])}
