"""A machine that loses its power at any moment: what was acknowledged is on its disk."""

import os
import random
import subprocess
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from proofs.faults.account import DUE, complaints
from proofs.faults.installation import PATIENCE, Installation, installation, quick, wait_until
from proofs.faults.load import Agents
from proofs.faults.receiver import receiving
from proofs.storage.power import Disk, disk_with_power
from workspace.git.bare_repository import LEFT

DISK = 2000  # megabytes
TIMES = int(os.environ.get("NEXUS_LOSSES_OF_POWER", "3"))
SEED = int(os.environ.get("NEXUS_LOSSES_SEED", "5"))
SCOPE, BRANCH = "src/greeting/", "feat/greeting"

pytestmark = pytest.mark.slow


@dataclass
class Coder:
    """An agent that writes, commits and pushes, and what of it was acknowledged."""

    at: Installation
    files: dict[str, str] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    sessions: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Accept a contract that opens coding mode, of a lead that has one itself."""
        terms = {"body": "Code.", "mode": "coding"}
        lead = {"to": "it_manager", "title": "Lead", **terms}
        self._accepts("it_manager", self.call("ceo", "generate_contract", **lead))
        own = {"workspace_scope": [SCOPE], "assigned_branch": BRANCH}
        code = {"to": "backend_worker", "title": "Code", **terms, **own}
        issued = self.call("it_manager", "create_contract", **code)
        self._accepts("backend_worker", issued)
        self.call("backend_worker", "git_branch", name=BRANCH)

    def _accepts(self, agent: str, issued: dict) -> None:
        self.call(agent, "accept_contract", contract_id=issued["contract_id"])

    def call(self, agent: str, tool: str, **params: object) -> dict:
        """Call under one key until it is answered; {} where the call was broken off."""
        headers = {"Authorization": f"Bearer {self.at.keys[agent]}"}
        if agent not in self.sessions:
            opened = httpx.post(f"{self.at.url}/api/v1/sessions", json={}, headers=headers)
            self.sessions[agent] = opened.json()["id"]
        headers |= {"X-Nexus-Session": self.sessions[agent], "Idempotency-Key": uuid.uuid4().hex}
        url, ends, said = f"{self.at.url}/api/v1/tools/{tool}", time.monotonic() + PATIENCE, ""
        while time.monotonic() < ends:
            with suppress(httpx.HTTPError):
                answer = httpx.post(url, json=params, headers=headers, timeout=30)
                said = f"{agent} {tool}: {answer.status_code} {answer.text[:600]}"
                if answer.status_code == 200:
                    return answer.json()["result"]
                if answer.json()["error_code"] == "IDEMPOTENCY_MISMATCH":
                    return {}
                if answer.status_code < 500:
                    break
            time.sleep(0.1)
        self.odd.append(said)
        return {}

    @contextmanager
    def at_work(self):
        """Let it work meanwhile."""
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set() and not self.odd:
                self.make_a_change()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def make_a_change(self) -> None:
        """One file more, on its branch; each step is acknowledged by itself."""
        path, text = f"{SCOPE}{uuid.uuid4().hex}.py", uuid.uuid4().hex
        if self.call("backend_worker", "write_file", path=path, content=text):
            self.files[path] = text
        if self.call("backend_worker", "git_commit", message="One more", paths=[path]):
            pushed = self.call("backend_worker", "git_push", branch=BRANCH)
            self.commits += [pushed["commit"]] if pushed else []

    def complaints(self) -> list[str]:
        """What was acknowledged and is not there."""
        company = self.at.tree / "nexus"
        bare, home = company / "repository.git", company / "agents/backend_worker"
        lost = [
            f"a file: {path}"
            for path, text in self.files.items()
            if text not in [file.read_text() for file in home.rglob(Path(path).name)]
        ]
        kept = _git(bare, "rev-list", f"refs/heads/{BRANCH}").split()
        lost += [f"a push: {commit}" for commit in self.commits if commit not in kept]
        broken = _git(bare, "fsck", "--full", "--no-dangling", "--no-progress")
        return [*self.odd, *lost, *([broken] if broken else [])]


def _git(folder: Path, *words: str) -> str:
    call = ["git", "-c", "safe.directory=*", "-C", str(folder), *words]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def lose_power(one: Installation, disk: Disk) -> None:
    """The machine loses its power, and starts again."""
    disk.lose_power()
    one.kill_everything()
    wait_until("the end of all that had files open", disk.unmount)
    disk.mount()
    for lock in one.tree.rglob("*.lock"):  # as after the minutes for which locks of git are left
        long_ago = time.time() - LEFT - 60
        os.utime(lock, (long_ago, long_ago))
    one.start()


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    folder = tmp_path_factory.mktemp("power")
    var, log = folder / "var", folder / "up.log"
    log.touch()
    with disk_with_power(folder / "disk", var, DISK) as disk, receiving() as receiver:
        (var / "up.log").symlink_to(log)  # what it said is asked for afterwards
        with installation(var, quick(receiver.url), twins=False) as one:
            yield one, disk, receiver


def test_what_was_acknowledged_is_there(company):
    one, disk, receiver = company
    agents, coder, chance = Agents(one), Coder(one), random.Random(SEED)
    coder.begin()
    for _ in range(TIMES):
        with agents.at_work(), coder.at_work():
            calls, pushes = len(agents.calls), len(coder.commits)
            wait_until("agents at work", lambda n=calls: len(agents.calls) > n + 20)
            wait_until("a push", lambda n=pushes: len(coder.commits) > n)
            time.sleep(chance.uniform(0.0, 3.0))
            lose_power(one, disk)
        coder.make_a_change()  # with it git has again what the database says
        one.wait_until_ready()
        wait_until("the last due row", lambda: not one.ask(DUE))
        assert coder.complaints() == []
        assert agents.odd == []
        assert complaints(one, agents.calls, receiver, settled=True) == []
        one.manage("ledger", "seal")
        assert "OK" in one.manage("ledger", "verify").stdout
        print(f"{len(agents.calls)} calls and {len(coder.commits)} pushes are there")
    with httpx.Client(base_url=one.url, timeout=30) as http:
        again = [agents.repeat(call, http) for call in agents.calls[-200:]]
    assert [problem for problem in again if problem] == []
