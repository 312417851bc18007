"""A whole company with folder, database, broker and beats of its own, and how to kill it."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import httpx
import psycopg

from nexus_site.run.postgres import Cluster, locked

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 180.0  # seconds within which everything must have happened on the slowest machine
IN_TRANSACTION = """
SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND state <> 'idle'
AND pid <> pg_backend_pid()
"""
PARTS = ("web", "worker", "beat", "postgres", "broker")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what: str, holds: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait for a condition; how long it takes proves nothing, that it comes is what is asked."""
    ends = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < ends, f"waited {patience:.0f} s in vain: {what}"
        time.sleep(0.05)


def quick(webhook: str) -> dict[str, str]:
    """Settings of an organisation in which nothing waits long, and whose Board has a webhook."""
    return {
        "escalation_timeout": "1",
        "ceo_timeout": "1",
        "task_lease": "2",
        "board_webhook": webhook,
        "allow_internal_addresses": "true",
    }


@dataclass
class Installation:
    """A running company: `make up` with three beats and quick jobs (company.py)."""

    var: Path
    settings: dict[str, str]
    port: int = field(default_factory=free_port)
    twins: bool = False
    process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.var / "up.log").read_text()

    @cached_property
    def keys(self) -> dict[str, str]:
        return json.loads((self.var / "keys" / "nexus.json").read_text())

    @property
    def tree(self) -> Path:
        """The company tree."""
        return self.var / "company"

    @property
    def twin(self) -> Path:
        """Names the twin that stands in for its mechanism while this file exists."""
        return self.var / "twin"

    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
        own = {
            "NEXUS_VAR": self.var,
            "WORKSPACE_ROOT": self.tree,
            "LEDGER_DIR": self.var / "ledger",
            "PORT": self.port,
            "LOG_LEVEL": "WARNING",
            "FAULTS_PARENT": os.getpid(),
            "NEXUS_RATE_PER_MINUTE": 10**9,
            "NEXUS_RATE_BURST": 10**9,
            "PGOPTIONS": "",
            **({"FAULTS_TWIN": self.twin} if self.twins else {}),
        }
        return inherited | {name: str(value) for name, value in own.items()}

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "proofs.faults.company"],
            cwd=ROOT,
            env=self.environment(),
            stdout=(self.var / "up.log").open("a"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.wait_until_ready(patience=4 * PATIENCE)  # a first start makes a whole database

    def stop(self) -> None:
        """End it with everything it started, whatever state it is in."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in self._postmasters():
            os.kill(pid, signal.SIGQUIT)

    def configure(self) -> None:
        """Set what the organisation decides for itself, as a person would."""
        values = [f"{name}={value}" for name, value in self.settings.items()]
        self.manage("org", "set", "nexus", *values)

    def manage(self, *words: str) -> subprocess.CompletedProcess:
        return self.run("manage.py", *words)

    def run(self, *words: str) -> subprocess.CompletedProcess:
        """Run a program of ours in this company's surroundings."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def connect(self) -> psycopg.Connection:
        """The embedded database, asked directly."""
        return Cluster.under(self.var).connect("nexus")

    def ask(self, query: str) -> list[tuple]:
        """What the database answers, once it has recovered from what was killed."""
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                with self.connect() as database:
                    return database.execute(query).fetchall()
            except psycopg.OperationalError:
                assert time.monotonic() < ends, f"no database for {PATIENCE:.0f} s"
                time.sleep(0.05)

    def ready(self) -> dict[str, str]:
        """What /readyz says; nothing while nobody answers."""
        assert self.process.poll() is None, f"the company has given up:\n{self.log[-3000:]}"
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return {}

    def wait_until_ready(self, patience: float = PATIENCE) -> None:
        wait_until("/readyz", lambda: self.ready().get("status") == "ready", patience)

    def wait_until_clocks_tick(self) -> None:
        """Wait until beat, broker, worker and database have done a round from now on."""
        query = "SELECT last_at FROM toolbox_jobrun WHERE name = 'leases' AND last_problem = ''"
        (now,) = self.ask("SELECT clock_timestamp()")[0]
        wait_until("a job", lambda: any(last > now for (last,) in self.ask(query)))

    def pids(self, part: str) -> list[int]:
        """Processes of one part that live."""
        match part:
            case "postgres":
                return self._postmasters()
            case _:
                name = "valkey-server" if part == "broker" else f"nexus {part}"
                return [pid for pid, shown in self._children() if shown.startswith(name)]

    def _children(self) -> list[tuple[int, str]]:
        return _children_of(self.process.pid)

    def _postmasters(self) -> list[int]:
        pid = Cluster.under(self.var).pid()
        return [pid] if pid else []

    def kill(self, part: str, chance: random.Random) -> None:
        """`kill -9` one process of a part and wait until it is gone."""
        victims = self.pids(part)
        if part == "postgres":  # the first of its processes, or any other: all of it crashes
            victims = chance.choice([victims, [p for one in victims for p, _ in _children_of(one)]])
        assert victims, f"there is no {part} to kill"
        victim = chance.choice(victims)
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        wait_until(f"the end of {part}", lambda: not _lives(victim))

    def kill_all(self, part: str) -> None:
        for pid in self.pids(part):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_everything(self) -> None:
        """Kill it with all that it has started, as a machine does that loses its power."""
        for pid in [self.process.pid, *_all_below(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    @contextmanager
    def paused(self, part: str):
        """Let every process of a part stand still meanwhile."""
        held = self.pids(part)
        _signal(held, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(held, signal.SIGCONT)

    @contextmanager
    def paused_between_jobs(self):
        """Let the worker stand still meanwhile, with no lock held. Nothing else may be at work."""

        def holds_nothing():
            held = self.pids("worker")
            _signal(held, signal.SIGCONT)
            time.sleep(0.1)
            _signal(held, signal.SIGSTOP)
            return not self.ask(IN_TRANSACTION)

        with self.paused("worker"):
            wait_until("the worker between two transactions", holds_nothing)
            yield

    @contextmanager
    def without_postgres(self):
        """Kill the database, and let nobody start it meanwhile."""
        data = Cluster.under(self.var).data
        with locked(data.with_name("postgres.start.lock")):
            self.kill_all("postgres")
            yield


def _signal(pids, number: int) -> None:
    for pid in pids:
        os.kill(pid, number)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _children_of(parent: int) -> list[tuple[int, str]]:
    """Living children of a process, with the names they are listed under."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, ppid = after.split()[:2]
        if ppid == str(parent) and state != "Z":
            pid, _, name = before.partition(" (")
            found.append((int(pid), name))
    return sorted(found)


def _all_below(parent: int) -> list[int]:
    children = [pid for pid, _ in _children_of(parent)]
    return children + [below for pid in children for below in _all_below(pid)]


@contextmanager
def installation(var: Path, settings: dict[str, str], *, twins: bool):
    """Found a company, and stop it with everything it started."""
    one = Installation(var, settings, twins=twins)
    try:
        one.start()
        one.configure()
        yield one
    finally:
        one.stop()
