"""What services ask of the database: open transactions, broken constraints, ids that clash."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    IntegrityError,
    connection,
    connections,
    transaction,
)
from django.db.models import Q
from django.db.models.expressions import RawSQL
from psycopg_pool import PoolTimeout

P = ParamSpec("P")
T = TypeVar("T")

ATTEMPTS = 20
TRIES = 3  # of work that PostgreSQL broke
BROKEN = frozenset({"40P01", "40001"})
"""SQLSTATEs of a deadlock that PostgreSQL broke and of a serialisation that failed."""
DAMAGED = frozenset({"XX001", "XX002"})
"""SQLSTATEs of a page of a table or an index that is not as PostgreSQL wrote it."""
ENDED = frozenset(
    {
        *("57P01", "57P02", "57P03", "57P05", "57014", "25P03", "25P04", "53200", "53300"),
        *("55P03", "25006"),
    }
)
"""SQLSTATEs of a server that stops, starts, is full, has no memory, is a replica since a failover,
or sets a connection, a statement or a wait its limit."""
AHEAD = timedelta(minutes=5)
"""How far the time of a row may be ahead, as of a call that began a moment later than this one."""
MAY_REST = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""For a transaction that waits for something else, and holds back no seal: it writes nothing."""
KEPT = "nexus_cursor"
"""The attribute of psycopg's connection that keeps a cursor of it."""


PLANNED: ContextVar[bool] = ContextVar("planned_for_values", default=False)
"""Whether each statement is planned for its values, and none is kept on the server."""


class OutsideTransaction(RuntimeError):
    """A function that needs its caller's transaction was called without one."""


def fetch_row(statement: str, values: Mapping[str, Any] | Sequence[Any] | None = None) -> Any:
    """Execute a statement; the first row of its answer as a tuple, or None.

    It asks psycopg's cursor, one for each connection: a new one inside of Django's wrapper takes
    more processor time than the rest of a short statement. Django's errors are raised as ever, and
    who listens to its queries hears of this one.
    """
    django: Any = connections[DEFAULT_DB_ALIAS]
    if django.queries_logged or django.execute_wrappers:
        with django.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchone()
    django.validate_thread_sharing()
    django.ensure_connection()
    django.validate_no_broken_transaction()
    raw = django.connection
    with django.wrap_database_errors:
        kept = getattr(raw, KEPT, None)
        if kept is None:
            kept = django.create_cursor()
            setattr(raw, KEPT, kept)
        kept.execute(statement, values)
        return kept.fetchone()


def limit_lock_waits(seconds: float) -> None:
    """Limit how long each statement of this transaction waits for a lock that another holds."""
    fetch_row("SELECT set_config('lock_timeout', %s, true)", [f"{seconds * 1000:.0f}ms"])


@contextmanager
def planned_for_values() -> Iterator[None]:
    """Let PostgreSQL plan each statement inside for its values.

    Of a prepared statement it keeps one plan for all values after five executions, if that seems as
    cheap. Such a plan knows neither how few rows an agent or an organisation has, nor that a
    value is the one a partial index is of: where it has a `LIMIT`, it may read the rows of everyone
    for the first of a caller that has none.
    """
    token = PLANNED.set(True)
    try:
        yield
    finally:
        PLANNED.reset(token)


def rows_of_array(
    values: Sequence[int] | Sequence[str], kind: Literal["bigint", "text", "uuid"]
) -> RawSQL:
    """Many values as a query, for a filter such as `id__in=rows_of_array(ids, "bigint")`.

    A list there has a parameter for each of them, and PostgreSQL takes 65,535 at most.
    """
    return RawSQL(f"SELECT unnest(%s::{kind}[])", [list(values)])  # noqa: S611  a closed set


def database_now() -> datetime:
    """The time of the database: the machines' own times may differ (Spec: clocks 3)."""
    (now,) = fetch_row("SELECT clock_timestamp()")
    return now  # type: ignore[no-any-return]


def in_last(span: timedelta, column: str, *, now: datetime) -> Q:
    """The condition in SQL that is `is_in_last` for the times in a column."""
    return Q(**{f"{column}__gt": now - span, f"{column}__lte": now + AHEAD})


def is_in_last(span: timedelta, at: datetime, *, now: datetime) -> bool:
    """Whether a time lies within this span before now.

    A time of the future, from which the database's clock was set back, does not.
    """
    return now - span < at <= now + AHEAD


def give_back_connection() -> None:
    """Give this thread's connection back to the pool, as Django does at the end of a request."""
    connection.close_if_unusable_or_obsolete()


def in_transaction() -> bool:
    """True if the product has opened a transaction; a test case's own does not count.

    Django marks the blocks that its test cases open (`_from_testcase`).
    """
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def needs_transaction(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that writes a part of a larger change: only its caller opens the transaction.

    `transaction.atomic()` opens one; this only checks for an open one. Raises OutsideTransaction.
    """

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if not in_transaction():
            raise OutsideTransaction(f"{function.__qualname__} needs the transaction of its caller")
        return function(*args, **kwargs)

    return checked


@needs_transaction
def after_commit(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Do it once this transaction is committed. What fails then is logged, and changes no answer.

    In a function with a name: of others, such as a `partial`, Django fails to log the failure.
    """
    transaction.on_commit(lambda: work(*args, **kwargs), robust=True)


@needs_transaction
def hold_lock(*name: object, is_shared: bool = False) -> None:
    """Hold the lock of this name until the transaction ends.

    Give a name that begins with what it is for: all locks of the database share one space. Those
    who hold it `is_shared` wait for who holds it alone, and not for each other.
    """
    lock = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {lock}(hashtextextended(%s, 0))", [" ".join(map(str, name))])


@needs_transaction
def fetch_each(
    statement: str, values: Sequence[Mapping[str, Any]]
) -> Sequence[tuple[Any, ...] | None]:
    """Execute a statement once for each set of values; the first row that each returned.

    All are sent before the first answer is read, so many cost one wait (psycopg's pipeline, which
    Django's cursor has no name for).
    """
    if not values:
        return []
    with connection.cursor() as cursor, connection.wrap_database_errors:
        pipeline: Any = cursor.cursor
        pipeline.executemany(statement, values, returning=True)
        return [result.fetchone() for result in pipeline.results()]


def retry_broken(work: Callable[[], T], *, is_repeatable: bool = False) -> T:
    """Do it again where PostgreSQL broke a deadlock: the transaction has left nothing behind.

    Give it no work that also acts outside of the database, unless that can be repeated. Work that
    changes nothing when it is repeated is also done once more where the connection was lost. Of
    other work no one can say whether it was committed.
    """
    left = {True: int(is_repeatable), False: TRIES - 1}
    while True:
        try:
            return work()
        except Error as problem:
            lost = is_lost(problem)
            if not left[lost] or not (_has_ended(problem) if lost else is_broken(problem)):
                raise
            left[lost] -= 1
            if lost and not connection.in_atomic_block:
                connection.close()


def is_lost(problem: BaseException | None) -> bool:
    """Whether the cause is a connection that ended, or that none or a lock was not to be had."""
    for each in _causes(problem):
        if isinstance(each, psycopg.Error) and each.sqlstate in ENDED:
            return True
        if isinstance(each, psycopg.OperationalError) and not isinstance(
            each, psycopg.errors.PipelineAborted
        ):
            # What breaks a connection without a word of the server has no SQLSTATE.
            return (each.sqlstate or "08").startswith("08")
    return False


def _has_ended(problem: BaseException) -> bool:
    """False where a connection, a lock or an answer was waited for in vain: it would be again."""
    in_vain = PoolTimeout | psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled
    return not isinstance(problem.__cause__, in_vain)


def is_broken(problem: BaseException | None) -> bool:
    """Whether the cause is a transaction that PostgreSQL ended for the sake of another one."""
    return _has_state(problem, BROKEN)


def is_damaged(problem: BaseException | None) -> bool:
    """Whether the cause is a file of PostgreSQL that is damaged."""
    return _has_state(problem, DAMAGED)


def _has_state(problem: BaseException | None, states: Collection[str]) -> bool:
    return any(getattr(each, "sqlstate", "") in states for each in _causes(problem))


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """An exception, and what it was raised for or after, down to the first one."""
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def violated_constraint(problem: IntegrityError) -> str:
    """The name of the constraint that PostgreSQL says was violated, or ''. Never read the text."""
    return getattr(getattr(problem.__cause__, "diag", None), "constraint_name", None) or ""


def violated_values(problem: IntegrityError) -> list[int]:
    """The ids that a trigger gives as its reason, or []. Never read the text."""
    detail = getattr(getattr(problem.__cause__, "diag", None), "message_detail", None)
    return json.loads(detail) if detail else []


def insert_with_free_id(insert: Callable[[int], T], *, unique: str) -> T:
    """Insert with a fresh id until it clashes with no other; `insert` gets the attempt's number.

    Each attempt is a savepoint. A clash is an IntegrityError of the constraint `unique`; any other
    error is raised. Raises RuntimeError after ATTEMPTS clashes.
    """
    for attempt in range(ATTEMPTS):
        try:
            with transaction.atomic():
                return insert(attempt)
        except IntegrityError as problem:
            if violated_constraint(problem) != unique:
                raise
    raise RuntimeError(f"{unique}: no free id in {ATTEMPTS} attempts")
