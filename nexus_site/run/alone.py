"""Of all machines on one database, one at a time prepares it; the others wait for their turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, connection

LOCK = "hashtextextended('nexus preparing', 0)"
LOOK = 0.2  # seconds; who waited in a statement would hold up an index that is made concurrently


@contextmanager
def alone_on_database() -> Iterator[None]:
    """Prepare the database while no other process does; again within itself too.

    The lock is the connection's, so it ends with this process, however that ends.
    """
    while not _ask(f"SELECT pg_try_advisory_lock({LOCK})"):
        time.sleep(LOOK)
    try:
        yield
    finally:
        with suppress(DatabaseError):  # the connection was lost, and the lock with it
            _ask(f"SELECT pg_advisory_unlock({LOCK})")


def _ask(question: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return bool(cursor.fetchone()[0])
