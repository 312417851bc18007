"""Waking requests that wait: one NOTIFY for many agents after a commit, one LISTEN per process.

Notifications are hints: what happened is in the tables, and a waiter that misses one finds it when
it asks again. They are sent after the commit and outside of it, because NOTIFY inside a transaction
makes all commits of a database wait for each other, and only for agents that a request of another
process waits for (`toolbox.watches`).
"""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import structlog
from django.db import connection, transaction

from toolbox.watches import Watches

log = structlog.get_logger(__name__)

CHANNEL = "nexus_wake"
ORGANISATION = "o"
"""What a trigger writes before an organisation's id: all its agents look again. Rare, as a policy
changes or everyone is paused, so it may be sent inside the commit.
"""
RETRY_SECONDS = 1.0
LISTEN_SECONDS = 5.0
LOOK_SECONDS = 3.0
"""From one look of all waiters to the next where no notification can be heard."""
IDLE_SECONDS = 0.5
"""Idle time after which the sender closes its connection."""
GATHER_SECONDS = 0.1
"""From one notification of a process to its next, which gathers agents meanwhile: the first is sent
at once, and a busy process sends few. At 0.02 they cost a send 3 to 5 % of its processor time.
While an agent mails without a pause, a waiter in another process hears of a mail about 0.05 s
later.
"""
NOTIFY = """
SELECT pg_notify(%(channel)s, string_agg(DISTINCT agent_id::text, ',') || %(sender)s)
FROM toolbox_watch WHERE agent_id = ANY(%(agents)s::bigint[]) AND listener <> %(mine)s
HAVING count(*) > 0
"""

Waker = Callable[[], object]


class Waiters:
    """The callables of requests that wait for something to happen to an agent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, list[Waker]] = {}
        self._organisations: dict[int, int] = {}

    @contextmanager
    def waiting(self, agent_id: int, waker: Waker, organisation_id: int = 0) -> Iterator[None]:
        """Call `waker`, from any thread, whenever the agent is woken inside the block."""
        with self._lock:
            self._waiting.setdefault(agent_id, []).append(waker)
            self._organisations[agent_id] = organisation_id
        try:
            yield
        finally:
            with self._lock:
                self._waiting[agent_id].remove(waker)
                if not self._waiting[agent_id]:
                    del self._waiting[agent_id], self._organisations[agent_id]

    def wake(self, agent_ids: Iterable[int]) -> None:
        """Call every waker of these agents."""
        with self._lock:
            wakers = [w for agent_id in agent_ids for w in self._waiting.get(agent_id, ())]
        for waker in wakers:
            waker()

    def wake_organisation(self, organisation_id: int) -> None:
        """Call every waker of its agents: those of others have nothing to look for."""
        with self._lock:
            theirs = [a for a, one in self._organisations.items() if one == organisation_id]
        self.wake(theirs)

    def wake_all(self) -> None:
        """Call every waker: a notification may have been missed."""
        self.wake(self.agents())

    def agents(self) -> list[int]:
        """The agents that somebody waits for."""
        with self._lock:
            return list(self._waiting)


WAITERS = Waiters()
WATCHES = Watches(WAITERS.agents)
_outgoing: queue.SimpleQueue[int] = queue.SimpleQueue()
_names: dict[int, str] = {}
"""The random name of a process in its notifications, by pid, because a fork inherits this."""
_threads: dict[str, threading.Thread] = {}
_starting = threading.Lock()


def wake(*agent_ids: int | None) -> None:
    """Wake the waiters of these agents after the current transaction commits."""
    ids = [agent_id for agent_id in agent_ids if agent_id is not None]
    if not ids:
        return
    if connection.in_atomic_block:
        transaction.on_commit(lambda: _send(ids))
    else:
        _send(ids)  # Django would look whether there is a connection first


def _send(agent_ids: list[int]) -> None:
    WAITERS.wake(agent_ids)
    for agent_id in agent_ids:
        _outgoing.put(agent_id)
    _run("wake-notify", _notify_forever)


def listen() -> None:
    """Start this process's listener, once."""
    _run("wake-listen", _listen_forever)


def _run(name: str, target: Callable[[], None]) -> None:
    thread = _threads.get(name)
    if thread is not None and thread.is_alive():
        return
    with _starting:
        thread = _threads.get(name)
        if thread is None or not thread.is_alive():
            _threads[name] = threading.Thread(target=target, name=name, daemon=True)
            _threads[name].start()


def _notify_forever() -> None:
    me = _names[os.getpid()] = secrets.token_hex(8)
    sent = 0.0
    while True:
        try:
            ids = {_outgoing.get(timeout=IDLE_SECONDS)}
        except queue.Empty:
            connection.close()
            ids = {_outgoing.get()}
        time.sleep(max(0.0, sent + GATHER_SECONDS - time.monotonic()))
        while not _outgoing.empty() and len(ids) < 500:
            ids.add(_outgoing.get())
        try:
            _notify(ids, f"@{me}")
            sent = time.monotonic()
        except Exception:
            log.warning("wake_not_sent", exc_info=True)
            connection.close()
            time.sleep(RETRY_SECONDS)


def _notify(agent_ids: set[int], sender: str) -> None:
    values: dict[str, Any] = {
        "channel": CHANNEL,
        "sender": sender,
        "agents": sorted(agent_ids),
        "mine": WATCHES.listener,
    }
    with connection.cursor() as cursor:
        cursor.execute(NOTIFY, values)


def _listen_forever() -> None:
    while True:
        try:
            connection.ensure_connection()
            raw = cast("psycopg.Connection", connection.connection)
            if not _hears(raw):
                connection.close()
                time.sleep(LOOK_SECONDS)
                WAITERS.wake_all()
                continue
            WATCHES.connect(raw)
            raw.execute(f"LISTEN {CHANNEL}")
            WAITERS.wake_all()  # what was announced and not yet heard is looked for
            while True:
                for note in raw.notifies(timeout=LISTEN_SECONDS):
                    _handle_notification(note.payload)
                WATCHES.retire(raw)
        except Exception:
            WATCHES.disconnect()
            log.warning("wake_not_heard", exc_info=True)
            connection.close()
            time.sleep(RETRY_SECONDS)


def _hears(raw: psycopg.Connection) -> bool:
    """Whether notifications reach this connection.

    A proxy that pools by transaction gives it a process of the server for a moment only, and a
    number of its own.
    """
    (pid,) = raw.execute("SELECT pg_backend_pid()").fetchone() or (0,)
    return bool(pid == raw.info.backend_pid)


def _handle_notification(payload: str) -> None:
    """Wake for other processes and for triggers; this process woke its own waiters already."""
    ids, _, sender = payload.partition("@")
    if ids.startswith(ORGANISATION):
        WAITERS.wake_organisation(int(ids.removeprefix(ORGANISATION)))
    elif not sender or sender != _names.get(os.getpid()):
        WAITERS.wake(int(part) for part in ids.split(",") if part)
