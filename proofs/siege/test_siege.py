"""The corpus against a running company: nothing accepted, memory flat, neighbours served."""

import math
import os
import socket
import statistics
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx
import pytest

from proofs.faults.installation import installation
from proofs.siege.corpus import corpus

SILENT = 200  # connections that never say anything, while all this goes on
ROUNDS = int(os.environ.get("NEXUS_SIEGE_ROUNDS", "2"))


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    with installation(
        tmp_path_factory.mktemp("siege"), {"escalation_timeout": "60"}, twins=False
    ) as one:
        yield one


def status_of(port: int, sent: bytes) -> int:
    """The status of the answer; 0 where the connection ended without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=3) as client:
        answer = b""
        with suppress(OSError):
            client.sendall(sent)
        with suppress(OSError):
            while b"\r\n" not in answer and (part := client.recv(4096)):
                answer += part
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def resident(pids: list[int]) -> int:
    """Megabytes of these processes together."""
    found = 0
    for pid in pids:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        found += pages * os.sysconf("SC_PAGESIZE")
    return found // 2**20


class Neighbour:
    """A well-behaved agent that calls all the time."""

    def __init__(self, url: str, key: str) -> None:
        self.times: list[float] = []
        self.wrong = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._call, args=(url, key))

    def _call(self, url: str, key: str) -> None:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
            while not self._ended.is_set():
                begun = time.perf_counter()
                self.wrong += client.get("/api/v1/me", timeout=30).status_code != 200
                self.times.append(time.perf_counter() - begun)
                time.sleep(0.01)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def p99(self) -> float:
        """Milliseconds."""
        ordered = sorted(self.times)
        return 1000 * ordered[math.ceil(len(ordered) * 0.99) - 1]


def test_nothing_gets_through(company):
    keys, wrong = company.keys, []
    attacks = list(corpus(keys["backend_worker"]))
    costs: dict[str, list[float]] = defaultdict(list)
    for attack in attacks:  # once for what is imported and cached at first use
        status_of(company.port, attack.sent)
    with Neighbour(company.url, keys["ceo"]) as quiet:
        time.sleep(5)
    before = resident(company.pids("web"))
    silent = [socket.create_connection(("127.0.0.1", company.port)) for _ in range(SILENT)]
    with Neighbour(company.url, keys["ceo"]) as besieged:
        for _ in range(ROUNDS):
            for attack in attacks:
                begun = time.perf_counter()
                status = status_of(company.port, attack.sent)
                costs[attack.family].append(time.perf_counter() - begun)
                if status not in attack.right:
                    wrong.append((attack.family, status, attack.sent[:120]))
    after = resident(company.pids("web"))
    for one in silent:
        one.close()
    for family, times in costs.items():
        print(f"{family:28} {len(times):5} sent, median {1000 * statistics.median(times):7.1f} ms")
    print(f"{len(set(attacks))} distinct attacks, {ROUNDS} rounds")
    print(f"web processes: {before} MB before, {after} MB after")
    print(f"neighbour's p99: {quiet.p99:.1f} ms quiet, {besieged.p99:.1f} ms besieged")
    families = Counter((family, status) for family, status, _ in wrong)
    assert not wrong, (families, wrong[:3])
    assert besieged.wrong == 0
    assert after <= before * 1.1 + 5
