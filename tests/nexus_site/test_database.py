"""Connections that the server ended while they rested in the pool."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import monotonic

import psycopg
import pytest
from django.db import close_old_connections, connection, connections

from nexus_site.run.database.base import SET_UP, NewestFirst
from tests.patience import PATIENCE

AT_ONCE = 4


@pytest.fixture
def pooled(transactional_db):
    """Threads that have filled the pool."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        together = Barrier(AT_ONCE)
        list(threads.map(lambda _: ask(together), range(AT_ONCE)))
        connection.close()
        yield threads
    connection.close()


def ask(together=None):
    """The process that answers a query; the connection goes back to the pool."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            if together:
                together.wait(PATIENCE)
            return cursor.fetchone()[0]
    finally:
        close_old_connections()


def end_all():
    """End every connection to the test's database, as a restart or a failover does."""
    given = connection.get_connection_params()
    where = {name: given[name] for name in ("dbname", "user", "host", "port") if given.get(name)}
    with psycopg.connect(**where, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_call_never_meets_a_connection_that_the_server_ended(pooled):
    for _ in range(3):
        end_all()
        assert all(pooled.map(lambda _: ask(), range(3 * AT_ONCE)))


def test_agents_and_people_get_answers_after_a_restart(pooled, client):
    end_all()
    answers = list(pooled.map(lambda _: client.get("/api/v1/me").status_code, range(AT_ONCE)))
    end_all()
    answers += pooled.map(lambda _: client.get("/admin/login/").status_code, range(AT_ONCE))
    assert set(answers) == {401, 200}


SPOILT = {
    "in_atomic_block": True, "closed_in_transaction": True, "needs_rollback": True,
    "errors_occurred": True, "savepoint_ids": ["s"], "atomic_blocks": [1], "run_on_commit": [1],
    "health_check_done": False, "close_at": None,
}  # fmt: skip
"""What the use before may have left behind."""


def test_a_connection_that_was_lent_before_begins_as_django_begins_one(transactional_db):
    wrapper, begun = connections["default"], []
    for is_first in (False, True, False):
        wrapper.close()
        vars(wrapper).update(SPOILT | {"in_atomic_block": False, "closed_in_transaction": False})
        wrapper.connect()
        if is_first:  # for Django's own way
            delattr(wrapper.connection, SET_UP)
            wrapper.close()
            vars(wrapper).update(SPOILT)
            wrapper.connect()
        assert wrapper.close_at <= monotonic()
        begun.append({**vars(wrapper), "close_at": 0.0, "connection": None})
    assert begun[0] == begun[1] == begun[2]
    assert not begun[0]["needs_rollback"]


def test_a_connection_that_came_back_in_a_transaction_commits_by_itself_again(transactional_db):
    wrapper = connections["default"]
    wrapper.set_autocommit(False)
    wrapper.close()
    wrapper.ensure_connection()
    assert (wrapper.get_autocommit(), wrapper.connection.autocommit) == (True, True)


def test_the_connection_that_came_back_last_is_lent(transactional_db):
    given = connection.get_connection_params() | {"autocommit": True}
    with NewestFirst(kwargs=given, min_size=3, max_size=3, open=True) as pool:
        pool.wait()
        first, second = pool.getconn(), pool.getconn()
        pool.putconn(second)
        pool.putconn(first)
        for _ in range(3):
            with pool.connection() as lent:
                assert lent is first
        with pool.connection() as lent, pool.connection() as other:
            assert (lent, other) == (first, second)
