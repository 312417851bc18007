"""Of all machines on one database, one at a time prepares it; the others wait for their turn."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count

import psycopg
from django.db import connection

from core.database import MAY_REST

LOCK = "hashtextextended('nexus preparing', 0)"
LOOK = 0.2  # seconds; who waited in a statement would hold up an index that is made concurrently
WAITS = "Another process prepares the database, or restores it. This one waits until it has ended\n"
SAID_AFTER = 10  # looks: two seconds

_held = False


@contextmanager
def alone_on_database() -> Iterator[None]:
    """Prepare the database while no other process does; again within itself too.

    The lock is that of a transaction on a connection of its own, so it ends with this process,
    however that ends, and also where a proxy lends connections for a transaction only.
    """
    global _held  # noqa: PLW0603  one for each process
    if _held:
        yield
        return
    with connection.wrap_database_errors:
        ours = psycopg.connect(**connection.get_connection_params())
    with closing(ours):
        with connection.wrap_database_errors:
            _wait_for_turn(ours)
        _held = True
        try:
            yield
        finally:
            _held = False
            with suppress(psycopg.OperationalError):  # lost, and the lock with it
                ours.rollback()


def _wait_for_turn(ours: psycopg.Connection) -> None:
    """Leave an open transaction that holds the lock, and nothing else."""
    for looks in count():
        if looks == SAID_AFTER:
            sys.stderr.write(WAITS)
        ours.execute(MAY_REST)
        row = ours.execute(f"SELECT pg_try_advisory_xact_lock({LOCK})").fetchone()
        if row and row[0]:
            return
        ours.rollback()
        time.sleep(LOOK)
