"""The corpus against a running company: nothing accepted, memory flat, neighbours served."""

import math
import multiprocessing
import os
import re
import resource
import secrets
import socket
import statistics
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, closing, suppress
from itertools import islice
from pathlib import Path
from typing import Self

import httpx
import pytest

from core.key_form import KEY_PREFIX
from lab.bench.load import measure, post
from proofs.faults.installation import installation
from proofs.siege.attack import request
from proofs.siege.corpus import corpus

SILENT = 200  # connections that never say anything, while all this goes on
ROUNDS = int(os.environ.get("NEXUS_SIEGE_ROUNDS", "2"))
DISTINCT = 3000
MANY = 4500  # connections; two web processes accept 2000 each
WARM_UPS = 2
WAVE = 300  # attacks between two quiet moments, so that both see the same machine
FLOOD = 450  # connections of a flood; 500 may come from one address
QUIET = 1.5  # seconds of one quiet moment
PARTS = ("web", "worker", "beat", "broker", "postgres")


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    with installation(
        tmp_path_factory.mktemp("siege"), {"escalation_timeout": "60"}, twins=False
    ) as one:
        yield one


def answer_of(port: int, sent: bytes) -> tuple[int, bytes]:
    """The status of the answer and what was read of it; 0 where there was none."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        with suppress(OSError):
            client.sendall(sent)
        with suppress(OSError):
            while len(answer) < 20_000 and (part := client.recv(4096)):
                answer += part
                if not _is_unfinished(answer):
                    break
    words = answer.split(b" ", 2)
    return (int(words[1]) if len(words) > 1 and words[1].isdigit() else 0), answer


def _is_unfinished(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return not found or length is None or len(body) < int(length[1])


def megabytes(pid: int) -> float:
    """Memory of its own; a page that processes share is the file's or the server's."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) / 1024


def memory(company) -> dict[str, float]:
    """Of each process, by part and place."""
    return {
        f"{part} {place}": megabytes(pid)
        for part in PARTS
        for place, pid in enumerate(company.pids(part), 1)
    }


class FileLimit:
    """Lets this process open more files for a while."""

    def __init__(self, files: int) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, max(files, self._before[1])))

    def close(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self._before)


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


def p99(times: list[float]) -> float:
    """Milliseconds."""
    ordered = sorted(times)
    return 1000 * ordered[math.ceil(len(ordered) * 0.99) - 1]


class Siege:
    """The attacks in waves with quiet moments between them, and what each class cost."""

    def __init__(self, company, attacks) -> None:
        self.company, self.attacks = company, attacks
        self.costs: dict[str, list[float]] = defaultdict(list)
        self.quiet: list[float] = []
        self.besieged: list[float] = []
        self.wrong: list[tuple] = []
        self.refused = 0

    def round(self) -> None:
        """Every attack once."""
        rest = iter(self.attacks)
        key = self.company.keys["ceo"]
        while wave := list(islice(rest, WAVE)):
            with Neighbour(self.company.url, key) as alone:
                time.sleep(QUIET)
            with Neighbour(self.company.url, key) as beside:
                for attack in wave:
                    self._try(attack)
            self.quiet += alone.times
            self.besieged += beside.times
            self.refused += alone.wrong + beside.wrong

    def _try(self, attack) -> None:
        begun = time.perf_counter()
        status, answer = answer_of(self.company.port, attack.sent)
        self.costs[attack.family].append(time.perf_counter() - begun)
        if status not in attack.right or (attack.never and attack.never in answer):
            self.wrong.append((attack.family, status, attack.sent[:300], answer[-300:]))

    def print(self) -> None:
        """What each class cost, and what a neighbour noticed."""
        for family, times in self.costs.items():
            median = 1000 * statistics.median(times)
            print(f"{family:28} {len(times):5} sent, median {median:7.1f} ms")
        print(f"{len(self.attacks)} distinct attacks, {ROUNDS} rounds")
        print(f"neighbour's p99: {p99(self.quiet):.1f} ms quiet, {p99(self.besieged):.1f} besieged")


def test_nothing_gets_through(company):
    attacks = list(dict.fromkeys(corpus(company.keys["backend_worker"])))
    assert len(attacks) >= DISTINCT
    for attack in attacks * WARM_UPS:  # what each process imports and caches at first use
        answer_of(company.port, attack.sent)
    siege, before = Siege(company, attacks), memory(company)
    with ExitStack() as silent:
        for _ in range(SILENT):
            one = socket.create_connection(("127.0.0.1", company.port))
            silent.enter_context(closing(one))
        for _ in range(ROUNDS):
            siege.round()
    after = memory(company)
    siege.print()
    for process, size in before.items():
        print(f"{process:12} {size:6.1f} MB before, {after.get(process, 0):6.1f} MB after")
    families = Counter((family, status) for family, status, *_ in siege.wrong)
    assert not siege.wrong, (families, siege.wrong[:3])
    assert siege.refused == 0
    assert after.keys() == before.keys()  # no process died and was started again
    assert [name for name, size in before.items() if after[name] > size * 1.1] == []
    assert p99(siege.besieged) <= 3 * p99(siege.quiet)


def key_of_nobody() -> str:
    """A key as keys look, which was never issued."""
    return KEY_PREFIX + secrets.token_urlsafe(40)[:43]


REFUSED = {"to": "ceo", "type": "info", "subject": "Hello", "body": "Past my superior."}
FLOODS = {
    "unknown keys": lambda _: post("/api/v1/tools/read_inbox", {}, key_of_nobody()),
    "unknown keys over MCP": lambda _: post("/mcp", {}, key_of_nobody()),
    "sign-ins": lambda _: post("/admin/login/", {"username": secrets.token_hex(8)}, ""),
    "one agent's refused mails": lambda keys: post(
        "/api/v1/tools/send_mail", REFUSED, keys["backend_worker"]
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_who_is_refused_again_and_again_slows_no_neighbour(company, flood):
    """Each of many connections asks again as soon as it was answered."""

    def ask():
        return FLOODS[flood](company.keys)

    load = multiprocessing.get_context("fork").Process(
        target=measure,
        kwargs={"ports": [company.port], "request": ask, "clients": FLOOD, "seconds": 60.0},
    )
    with Neighbour(company.url, company.keys["ceo"]) as alone:
        time.sleep(2 * QUIET)
    load.start()
    try:
        time.sleep(2 * QUIET)  # the first are answered at once
        with Neighbour(company.url, company.keys["ceo"]) as besieged:
            time.sleep(4 * QUIET)
        assert load.is_alive()
    finally:
        load.kill()
        load.join()
    middle = [1000 * statistics.median(each.times) for each in (alone, besieged)]
    print(f"{flood}: median {middle[0]:.1f} ms quiet, {middle[1]:.1f} besieged")
    print(f"{flood}: p99 {p99(alone.times):.1f} ms quiet, {p99(besieged.times):.1f} besieged")
    assert (alone.wrong, besieged.wrong) == (0, 0)
    assert middle[1] <= 2 * middle[0]


HALVES = {
    "headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "bodies": request("POST", "/admin/login/", "Content-Length: 60000"),
    "large bodies": request("POST", "/admin/login/", "Content-Length: 60000") + b"x" * 59_000,
}


@pytest.mark.skipif(sys.platform != "linux", reason="one machine has one address elsewhere")
@pytest.mark.parametrize("half", HALVES)
def test_unfinished_requests_lock_nobody_out(company, half):
    """More of them than all processes together accept, from many addresses."""
    with ExitStack() as opened, closing(FileLimit(MANY * 2)):
        for number in range(MANY):
            one = opened.enter_context(closing(socket.socket()))
            one.bind((f"127.0.1.{number % 20 + 1}", 0))
            one.connect(("127.0.0.1", company.port))
            with suppress(OSError):
                one.sendall(HALVES[half])
        with Neighbour(company.url, company.keys["ceo"]) as neighbour:
            time.sleep(QUIET)
    assert (len(neighbour.times) > 10, neighbour.wrong) == (True, 0)
