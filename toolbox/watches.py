"""Which agents the requests of each process wait for: no other agent's notification is sent.

A process inserts a row for an agent before the first look of a request that waits for it. A sender
looks for rows after its commit. One of the two always sees the other: the row was
there when the sender looked, or the waiting request looks after the commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

ANNOUNCE = """
INSERT INTO toolbox_watch (id, agent_id, listener)
SELECT gen_random_uuid(), agent_id, %(listener)s FROM unnest(%(agents)s::bigint[]) AS agent_id
RETURNING agent_id, id
"""
RETIRE = "DELETE FROM toolbox_watch WHERE id = ANY(%s)"
CLEAN = """
DELETE FROM toolbox_watch w
WHERE NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = w.listener)
"""  # of processes that have ended


class Watches:
    """The rows of this process, and the server's process that hears its notifications.

    While there is none, nothing is announced: the next one announces everybody and then wakes all.
    """

    def __init__(self, waited_for: Callable[[], Iterable[int]]) -> None:
        self._waited_for = waited_for
        self._lock = threading.Lock()
        self._rows: dict[int, list[UUID]] = {}
        self._unwanted: set[int] = set()
        self.listener = 0

    def covers(self, agent_id: int) -> bool:
        """Whether a look is safe now: the agent is announced, or all will be woken soon."""
        with self._lock:
            return not self.listener or agent_id in self._rows

    def announce(self, *agent_ids: int) -> None:
        """Insert rows; from its return on a commit for these agents notifies this process.

        Who waits is among the waiters before it calls this.
        """
        listener = self.listener
        if not listener or not agent_ids:
            return
        values: dict[str, Any] = {"agents": list(agent_ids), "listener": listener}
        with connection.cursor() as cursor:
            cursor.execute(ANNOUNCE, values)
            found = cursor.fetchall()
        with self._lock:
            if listener == self.listener:
                for agent_id, row in found:
                    self._rows.setdefault(agent_id, []).append(row)

    def connect(self, raw: psycopg.Connection) -> None:
        """Announce everybody who is waited for, as this listening connection hears it."""
        raw.execute(CLEAN)
        with self._lock:
            self._rows, self._unwanted = {}, set()
            self.listener = raw.info.backend_pid
        self.announce(*self._waited_for())

    def disconnect(self) -> None:
        """Announce nothing until the next connection."""
        with self._lock:
            self.listener, self._rows = 0, {}

    def retire(self, raw: psycopg.Connection) -> None:
        """Delete rows of agents for which no request has waited since the last call.

        Each announcement has a row of its own, so that a new one is never deleted with an old one.
        """
        with self._lock:
            wanted = set(self._waited_for())
            idle = set(self._rows) - wanted
            ends = [row for agent_id in idle & self._unwanted for row in self._rows.pop(agent_id)]
            self._unwanted = idle
        if ends:
            raw.execute(RETIRE, [ends])
