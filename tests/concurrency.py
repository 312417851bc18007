"""Many actors at one moment, each in a thread with a database connection of its own."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection, connections

from core.decision import Denied
from tests.patience import PATIENCE, wait_until


def at_once(acts: Sequence[Callable[[], Any]], *, raising: bool = False) -> list[Any]:
    """Start all acts together: what each returned, in their order.

    A refused act ends in its code; another error is its answer too, or is raised here (`raising`).
    Connections lie outside the pool, for there may be more of them than it holds.
    """
    begin = Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            connect_apart()
            begin.wait(PATIENCE)
            return act()
        except Denied as refusal:
            return refusal.deny.code
        except Exception as problem:
            if raising:
                raise
            return problem
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def connect_apart() -> None:
    """Give this thread a connection outside the pool."""
    own = dict(connection.settings_dict)
    own["OPTIONS"] = {name: value for name, value in own["OPTIONS"].items() if name != "pool"}
    connection.settings_dict = own
    connection.ensure_connection()


def is_waiting_for_a_lock() -> bool:
    """Whether another connection to this database waits for a lock just now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees one moment
        cursor.execute(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def outlast_the_look_for_a_deadlock() -> None:
    """Return when another connection has waited for a lock for longer than `deadlock_timeout`.

    It has then looked for a deadlock and found none; it does not look again.
    """
    wait_until(is_waiting_for_a_lock)
    time.sleep(1.5)
