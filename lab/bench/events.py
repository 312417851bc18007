"""From commit to client: how late an event is, and what watchers cost; a bare NOTIFY to compare."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import psycopg
from django.db import connection, transaction
from django.utils import timezone

from core.actions import Action
from core.actors import System
from lab.bench import postgres
from lab.bench.load import Rate
from lab.bench.report import Report
from lab.bench.served import Served
from ledger.services import record
from orgchart.models import Organisation
from toolbox.wake import wake

WATCHERS = (1, 50, 200)
EVENTS = 300
PAUSE = 0.02
QUIET = 5.0
HEAD = "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n"


class Arrivals:
    """When each event was committed, and how long after that it came to each watcher."""

    def __init__(self) -> None:
        self.committed: dict[str, float] = {}
        self.came: list[tuple[str, float]] = []

    def note_commit(self, name: str) -> None:
        """Remember that this event has just been committed."""
        self.committed[name] = time.perf_counter()

    def wait_for(self, count: int) -> None:
        """Wait until so many have come. Raises RuntimeError after a minute."""
        ends = time.monotonic() + 60
        while len(self.came) < count:
            if time.monotonic() > ends:
                raise RuntimeError(f"{len(self.came)} events of {count} came within a minute")
            time.sleep(0.01)

    def times(self) -> list[float]:
        """Seconds from commit to client."""
        return [max(0.0, at - self.committed[name]) for name, at in self.came]


def rows(
    report: Report,
    served: Served,
    organisation: Organisation,
    keys: dict[str, str],
) -> None:
    """One line for each number of watchers, each event for one agent after the other."""
    report.line("PostgreSQL itself: NOTIFY to LISTEN", 1, _bare())
    for many in WATCHERS:
        with _watching(served.port, list(keys.values()), many) as arrivals:
            before = served.cpu_seconds()
            time.sleep(QUIET)
            idle = (served.cpu_seconds() - before) / QUIET
            before, begun = served.cpu_seconds(), time.perf_counter()
            _commit(organisation, list(keys), arrivals)
            expected = sum(
                len(range(number, many, len(keys))) * len(range(number, EVENTS, len(keys)))
                for number in range(len(keys))
            )
            arrivals.wait_for(expected)
            took = time.perf_counter() - begun
            used = served.cpu_seconds() - before - idle * took
        late = Rate.of(arrivals.times(), took, 0)
        report.line(f"commit to client, {many} watchers", 1, late)
        report.value(f"{many} watchers while nothing happens", idle * 100, "% of a processor")
        report.value(f"an event that comes to one of {many}", used / expected * 1000, "ms of CPU")


def _commit(organisation: Organisation, handles: list[str], arrivals: Arrivals) -> None:
    """Write events as another process would: one transaction each, then the wake-up."""
    system = System(name="bench", organisation_id=organisation.id)
    agents = {a.handle: a.id for a in organisation.agents.all()}
    for number in range(EVENTS):
        agent, name = agents[handles[number % len(handles)]], f"bench:{time.monotonic_ns()}"
        with transaction.atomic():
            record(
                Action.ORGANISATION_LOADED,
                by=system,
                at=timezone.now(),
                subject=name,
                kind="bench",
                for_agent_id=agent,
            )
            transaction.on_commit(partial(arrivals.note_commit, name))
            wake(agent)
        time.sleep(PAUSE)


@contextmanager
def _watching(port: int, keys: list[str], many: int) -> Iterator[Arrivals]:
    """Open streams, key after key, in a loop of their own."""
    arrivals, ready, stop = Arrivals(), threading.Event(), threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_watch_all(port, keys, many, arrivals, ready, stop)), daemon=True
    )
    thread.start()
    try:
        if not ready.wait(60):
            raise RuntimeError("the watchers did not all begin")
        time.sleep(1)
        yield arrivals
    finally:
        stop.set()
        thread.join(10)


async def _watch_all(
    port: int,
    keys: list[str],
    many: int,
    arrivals: Arrivals,
    ready: threading.Event,
    stop: threading.Event,
) -> None:
    tasks = []
    for number in range(many):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD.format(key=keys[number % len(keys)]).encode())
        await reader.readuntil(b": watching\n")
        tasks.append((asyncio.create_task(_follow(reader, arrivals)), writer))
    ready.set()
    await asyncio.to_thread(stop.wait)
    for task, writer in tasks:
        task.cancel()
        writer.close()


async def _follow(reader: asyncio.StreamReader, arrivals: Arrivals) -> None:
    while line := await reader.readline():
        if line.startswith(b"data: "):
            at = time.perf_counter()
            arrivals.came.append((json.loads(line[6:])["subject"], at))


def _bare() -> Rate:
    """A commit, its NOTIFY and a LISTEN that hears it, with nothing between them."""
    heard: list[float] = []
    given = connection.get_connection_params()
    where = {name: given[name] for name in postgres.WHERE if given.get(name)}
    with psycopg.connect(**where, autocommit=True) as hearing:
        hearing.execute("LISTEN nexus_bench")
        begun = time.perf_counter()
        for _ in range(EVENTS):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notify('nexus_bench', '')")
            sent = time.perf_counter()
            next(cast("Iterator[psycopg.Notify]", hearing.notifies(timeout=5, stop_after=1)))
            heard.append(time.perf_counter() - sent)
        return Rate.of(heard, time.perf_counter() - begun, 0)
