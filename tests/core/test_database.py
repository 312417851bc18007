"""Rows that are asked for, and parts of a larger change that are written in its transaction."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import (
    DatabaseError,
    ProgrammingError,
    connection,
    connections,
    transaction,
)
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from core.database import (
    AHEAD,
    KEPT,
    OutsideTransaction,
    after_commit,
    fetch_row,
    hold_lock,
    in_last,
    is_in_last,
)
from toolbox.models import JobRun


class TestWhatNeedsATransaction:
    @pytest.mark.parametrize("write", [lambda: after_commit(print), lambda: hold_lock("a name")])
    def test_is_refused_without_one(self, write):
        """A lock, for one, would be free again before its caller has done anything."""
        with pytest.raises(OutsideTransaction):
            write()


class TestARow:
    def test_is_the_first_of_an_answer_or_none(self, db):
        assert fetch_row(
            "SELECT n, %(word)s::text FROM generate_series(1, 3) n", {"word": "a"}
        ) == (
            1,
            "a",
        )
        assert fetch_row("SELECT 1 WHERE %s::int > 1", [1]) is None
        assert fetch_row("SELECT '%'") == ("%",)

    def test_is_asked_by_one_cursor_of_a_connection(self, db):
        raw = {id(getattr(connection.connection, KEPT)) for _ in range(3) if fetch_row("SELECT 1")}
        assert len(raw) == 1

    def test_is_asked_of_the_connection_of_now(self, transactional_db):
        (before,) = fetch_row("SELECT pg_backend_pid()")
        connection.close()
        connection.close_pool()
        (after,) = fetch_row("SELECT pg_backend_pid()")
        assert before != after

    def test_is_refused_in_a_broken_transaction(self, db):
        with transaction.atomic():
            transaction.set_rollback(True)
            with pytest.raises(TransactionManagementError):
                fetch_row("SELECT 1")

    def test_that_fails_raises_djangos_error_and_the_next_is_found(self, transactional_db):
        with pytest.raises(ProgrammingError):
            fetch_row("SELECT nothing")
        assert connection.errors_occurred
        assert fetch_row("SELECT 1") == (1,)

    def test_is_no_other_threads(self, db):
        fetch_row("SELECT 1")
        mine = connections["default"]

        def ask():
            connections["default"] = mine
            with pytest.raises(DatabaseError, match="thread"):
                fetch_row("SELECT 1")

        with ThreadPoolExecutor(1) as pool:
            pool.submit(ask).result()

    def test_is_heard_of_by_who_listens(self, db):
        heard = []

        def hear(execute, sql, params, many, context):
            heard.append(sql)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(hear), CaptureQueriesContext(connection) as seen:
            fetch_row("SELECT 1")
        with CaptureQueriesContext(connection) as again:
            fetch_row("SELECT 2")
        assert heard == ["SELECT 1"]
        assert [len(seen), len(again)] == [1, 1]


class TestWhatIsOfTheLastTime:
    NOW = datetime(2026, 1, 1, tzinfo=UTC)
    HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)

    @pytest.mark.parametrize(
        ("at", "expected"),
        [
            (NOW - HOUR, False),
            (NOW - HOUR + TICK, True),
            (NOW, True),
            (NOW + AHEAD, True),
            (NOW + AHEAD + TICK, False),
        ],
    )
    def test_is_the_same_in_python_and_in_sql(self, db, at, expected):
        JobRun.objects.create(name="a job", last_at=at)
        rows = JobRun.objects.filter(in_last(self.HOUR, "last_at", now=self.NOW))
        assert is_in_last(self.HOUR, at, now=self.NOW) is expected
        assert rows.exists() is expected
