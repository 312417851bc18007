"""A whole installation of its own, agents that write down what was acknowledged, and a killer."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent.parent
QUICKLY = 60.0  # seconds within which a fallen installation must answer again


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Installation:
    """A running `up` with a folder, a database and a port of its own."""

    var: Path
    port: int
    process: subprocess.Popen
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_until_ready(self, patience: float = QUICKLY) -> None:
        ends = time.monotonic() + patience
        while time.monotonic() < ends:
            assert self.process.poll() is None, "the installation has given up"
            try:
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"not ready again within {patience} s")

    def pids(self, what: str) -> list[int]:
        """Processes of one kind, the longest-lived first: `postgres`, or web and worker."""
        if what == "postgres":
            return sorted(self._postmasters())
        found = []
        for folder in Path("/proc").iterdir():
            try:
                words = folder.joinpath("stat").read_text().rsplit(") ", 1)[1].split()
            except (OSError, IndexError):
                continue
            if words[1] == str(self.process.pid) and words[0] != "Z":
                found.append((int(words[19]), int(folder.name)))
        return [pid for _, pid in sorted(found)]

    def _postmasters(self):
        found = []
        data = str(self.var / "postgres")
        for folder in Path("/proc").iterdir():
            try:
                words = folder.joinpath("cmdline").read_bytes().decode().split("\0")
            except (OSError, UnicodeDecodeError):
                continue
            if words[0].endswith("/postgres") and data in words:
                found.append(int(folder.name))
        return found

    def rows(self, query: str) -> list[tuple]:
        """Ask the installation's database directly."""
        environment = {**os.environ, **self.environment()}
        code = (
            "import json; from django.db import connection; c = connection.cursor(); "
            f"c.execute({query!r}); print('ROWS' + json.dumps(c.fetchall(), default=str))"
        )
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        line = next(x for x in done.stdout.splitlines() if x.startswith("ROWS"))
        return [tuple(row) for row in json.loads(line[4:])]

    def environment(self) -> dict[str, str]:
        names = {
            "NEXUS_VAR": self.var,
            "NEXUS_COMPANY_ROOT": self.var / "company",
            "LEDGER_DIR": self.var / "ledger",
            "PORT": self.port,
            "NEXUS_RATE_PER_MINUTE": 10**9,
            "NEXUS_RATE_BURST": 10**9,
            "PGOPTIONS": "",
        }
        return {name: str(value) for name, value in names.items()}


@contextmanager
def installation(var: Path):
    """Start one, and stop it with everything it started."""
    one = Installation(var, free_port(), None)
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    one.process = subprocess.Popen(
        [sys.executable, "-m", "nexus_site.run", "up"],
        cwd=ROOT,
        env={**environment, **one.environment()},
        stdout=(var / "up.log").open("w"),
        stderr=subprocess.STDOUT,
    )
    try:
        one.wait_until_ready(120)
        one.keys = json.loads((var / "keys" / "nexus.json").read_text())
        yield one
    finally:
        one.process.send_signal(signal.SIGINT)
        try:
            one.process.wait(30)
        except subprocess.TimeoutExpired:
            one.process.kill()
        for pid in one._postmasters():
            os.kill(pid, signal.SIGQUIT)


@dataclass
class Agents:
    """Clients that send mails, repeat what was not answered, and remember what was acknowledged."""

    at: Installation
    threads: int = 4
    acknowledged: dict[str, str] = field(default_factory=dict)
    attempted: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def live(self) -> None:
        """One client, until told to stop; the call it is in is carried to its end."""
        with httpx.Client(base_url=self.at.url, timeout=10) as http:
            while not self.stop.is_set():
                self.send(http)

    def send(self, http: httpx.Client) -> None:
        mark = uuid.uuid4().hex
        self.attempted.add(mark)
        headers = {
            "Authorization": f"Bearer {self.at.keys['backend_worker']}",
            "Idempotency-Key": mark,
        }
        mail = {"to": "it_manager", "type": "info", "subject": mark, "body": "All is well."}
        ends = time.monotonic() + 2 * QUICKLY
        while time.monotonic() < ends:
            try:
                answer = http.post("/api/v1/tools/send_mail", json=mail, headers=headers)
            except httpx.HTTPError:
                time.sleep(0.1)
                continue
            if answer.status_code == 200:
                self.acknowledged[mark] = answer.json()["result"]["mail_id"]
                return
            if answer.status_code < 500:
                self.odd.append(f"{answer.status_code} {answer.text[:200]}")
                return
            time.sleep(0.1)
        self.odd.append(f"{mark} was never answered")


def kill(one: Installation, what: str) -> bool:
    """`kill -9` the longest-lived process of a kind; whether there was one."""
    for pid in one.pids(what)[:1]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True
    return False
