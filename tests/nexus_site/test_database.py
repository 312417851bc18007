"""Connections of the pool, ended by the server or lent again, and how their answers are read."""

import math
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier, Timer
from time import monotonic

import psycopg
import pytest
from django.db import (
    DataError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.pq import Format

from core.database import fetch_row, give_back_connection
from nexus_site import databases
from nexus_site.run.database import base as database
from nexus_site.run.database.base import SET_UP, TIME, Cursor, NewestFirst
from orgchart.models import Organisation
from orgchart.policy_cache import current_policy
from tests.company import load_company
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


def test_a_statement_of_a_call_is_ended(pooled, monkeypatch):
    """What one agent found to keep PostgreSQL busy for hours costs a minute."""
    monkeypatch.setattr(database, "_longest_statement", ["0"])
    monkeypatch.setattr(database, "CALL_STATEMENT", "50ms")
    try:
        database.limit_statements()
        end_all()
        with pytest.raises(OperationalError) as ended, connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
        assert isinstance(ended.value.__cause__, psycopg.errors.QueryCanceled)
    finally:
        monkeypatch.undo()
        connection.close()
        end_all()


def test_an_answer_is_not_lost_with_the_server(pooled, monkeypatch):
    """The end of a request connects to no server in order to give the connection back."""
    ask()
    connection.ensure_connection()
    connection._looked_at = 0.0  # the call took a while
    end_all()
    with monkeypatch.context() as down:
        down.setattr(NewestFirst, "getconn", lambda pool: pytest.fail("it connects anew"))
        give_back_connection()
    assert connection.connection is None


def test_a_server_that_is_not_met_is_given_up(pooled, monkeypatch):
    """As behind a proxy, which lends a connection of a server that hangs."""
    monkeypatch.setattr(database, "SERVER", "SELECT pg_sleep(60), %s")
    monkeypatch.setattr(
        database.BoundedConnection, "patience", min(database.BoundedConnection.patience, 0.3)
    )
    end_all()
    with pytest.raises(OperationalError):
        ask()
    monkeypatch.undo()
    end_all()


def test_a_server_that_ends_no_statement_is_given_up(pooled, monkeypatch):
    """As one whose machine hangs: its kernel still takes what it is sent. Spec: clocks 19."""
    monkeypatch.setattr(database, "_longest_statement", ["200ms"])
    monkeypatch.setattr(database, "GRACE", 0.3)
    end_all()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (stopped,) = cursor.fetchone()
        os.kill(stopped, signal.SIGSTOP)
        goes_on = Timer(PATIENCE, os.kill, (stopped, signal.SIGCONT))
        goes_on.start()
        try:
            with pytest.raises(OperationalError) as given_up:
                cursor.execute("SELECT 1")
        finally:
            goes_on.cancel()
            os.kill(stopped, signal.SIGCONT)
    assert given_up.value.__cause__.sqlstate is None  # nothing that the server said
    connection.close()
    assert ask() != stopped
    monkeypatch.undo()
    end_all()


@pytest.mark.parametrize("prepared", [True, False])
def test_a_statement_means_the_same_where_none_is_prepared(db, prepared):
    """A number in it that is no value of its own names a column."""
    plain = {**connection.settings_dict, "OPTIONS": {}}
    found = databases.pooled(plain, connections=1, prepared=prepared)
    del found["OPTIONS"]["pool"]
    with database.DatabaseWrapper(found).temporary_connection() as cursor:
        for _ in range(3):
            cursor.execute("SELECT 1 ORDER BY %s", [0])
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ["%1 ORDER%"]
        )
        assert bool(cursor.fetchone()[0]) is prepared


@pytest.mark.parametrize(("given", "longest", "left", "patience"), [
    ("0", "0", "0", None), ("0", "60s", "1min", 70.0), ("7s", "60s", "7s", 17.0),
    ("7s", "0", "7s", 17.0), ("1500ms", "60s", "1500ms", 11.5), ("2h", "60s", "2h", 7210.0),
])  # fmt: skip
def test_a_limit_of_the_operator_counts(
    transactional_db, monkeypatch, given, longest, left, patience
):
    monkeypatch.setattr(database, "_longest_statement", [longest])
    where = connection.get_connection_params()
    where = {name: where[name] for name in ("dbname", "user", "host", "port") if where.get(name)}
    options = f"-c statement_timeout={given}"
    with database.BoundedConnection.connect(**where, options=options) as new:
        database._meet_server(new)
        assert new.execute("SHOW statement_timeout").fetchone() == (left,)
        assert new.patience == patience


def test_no_rule_of_a_lost_end_is_kept_behind_a_failover(pooled, monkeypatch):
    """A replica that lacked the last versions gives their numbers to other changes."""
    acme = load_company("nexus").organisation
    lost = current_policy(acme.id)
    Organisation.objects.filter(id=acme.id).update(settings={"max_rounds": 9})
    assert current_policy(acme.id) is lost, "nothing says that it changed"
    connection.close()
    end_all()
    monkeypatch.setattr(database, "_server", ["another one"])
    assert current_policy(acme.id).settings["max_rounds"] == 9
    kept = current_policy(acme.id)
    connection.close()
    end_all()
    assert current_policy(acme.id) is kept, "it is the same server"


def ask_and_end_all():
    for _ in range(2):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        end_all()


def test_work_never_begins_on_a_connection_that_ended_while_its_thread_waited(transactional_db):
    """As that of a call whose program ran in the sandbox for a minute."""
    for _ in range(3):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
        end_all()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    connection.close()


def test_a_transaction_whose_connection_ended_is_never_gone_on_with(transactional_db):
    with pytest.raises(OperationalError), transaction.atomic():
        ask_and_end_all()
    connection.close()


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
        begun.append({**vars(wrapper), "close_at": 0.0, "_looked_at": 0.0, "connection": None})
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


TIMES = [
    datetime(2026, 2, 19, 9, 30, 0, 123456, UTC), datetime(2026, 2, 19, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), None,
]  # fmt: skip


class TestTimes:
    """Read by psycopg's own loader, which is written in C, and as Django's reads them."""

    def of(self, cursor):
        found = []
        for each in TIMES:
            cursor.execute("SELECT %s::timestamptz, ARRAY[%s::timestamptz]", [each, each])
            found.append(cursor.fetchone())
        return found

    def test_are_the_same_as_those_of_django(self, transactional_db):
        connection.ensure_connection()
        by_django = self.of(base.ServerBindingCursor(connection.connection))
        with connection.cursor() as cursor:
            assert type(cursor.cursor) is Cursor
            ours = self.of(cursor)
        assert ours == by_django == [(each, [each]) for each in TIMES]
        assert {each.tzinfo for each, _ in ours if each} == {UTC}

    def test_are_not_read_in_python(self, transactional_db):
        with connection.cursor() as cursor:
            loader = cursor.cursor.adapters.get_loader(TIME, Format.TEXT)
        assert loader is psycopg.adapters.get_loader(TIME, Format.TEXT)
        assert not issubclass(loader, BaseTzLoader)

    def test_without_an_end_are_refused_as_by_django(self, transactional_db):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'infinity'::timestamptz")
            with pytest.raises(DataError):
                cursor.fetchone()

    def test_of_a_query_read_part_by_part_are_the_same(self, transactional_db):
        times = MigrationRecorder.Migration.objects.order_by("id").values_list("applied")
        found = list(times)
        assert found
        assert [*times.iterator(chunk_size=3)] == found


@pytest.mark.parametrize(("seconds", "count"), [(math.inf, 0), (-1.0, 3)])
def test_a_connection_is_looked_at_once_in_a_while(transactional_db, monkeypatch, seconds, count):
    connections["default"].ensure_connection()
    looks = []
    monkeypatch.setattr(database, "is_ended", looks.append)
    monkeypatch.setattr(database, "LOOKED_AT", seconds)
    for _ in range(3):
        fetch_row("SELECT 1")
    assert len(looks) == count
