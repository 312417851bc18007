"""PostgreSQL as NEXUS uses it: the embedded server is claimed, and no connection is dead."""

import select
import time
from datetime import UTC
from functools import cache
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format, TransactionStatus
from psycopg_pool import ConnectionPool

from core.database import PLANNED
from core.hooks import Hook
from nexus_site.databases import PATIENCE
from nexus_site.run import cluster_lock
from nexus_site.run.postgres import Cluster

GIVEN_BACK_AT_ONCE = 0.0
"""By `time.monotonic`: the end of a request gives its connection back."""
LOOKED_AT = 0.1
"""Seconds for which a connection that was looked at is taken as it is: to look costs a system call,
which a short call would make for each of its statements."""
TIME = psycopg.adapters.types["timestamptz"].oid
SET_UP = "nexus_set_up"
"""The attribute of psycopg's connection that Django has made ready."""

SERVER = """
SELECT pg_postmaster_start_time()::text || ' ' || oid,
       extract(epoch FROM set_config('statement_timeout', coalesce(
           nullif(current_setting('statement_timeout'), '0'), %s), false)::interval)::float
FROM pg_database WHERE datname = current_database()
"""
"""Which database this is: after a failover, a restart or a restore it is another one.

The same question sets how long a statement may take, where neither role nor database has a limit,
and answers with that, in seconds.
"""
CALL_STATEMENT = "60s"
"""The most that a statement of a call or a page takes (Spec: clocks 19)."""

GRACE = 10.0
"""Seconds that a server has beyond a statement's limit to say that it ended it."""

server_changed: Hook[[], None] = Hook("what a process knows of rows may be known of lost ones")
_server = [""]
"""The last that this process was connected to."""
_longest_statement = ["0"]
"""What PostgreSQL ends; 0 is without end, as commands and jobs need."""

cluster_of = cache(Cluster.under)
"""The cluster of a folder; finding it asks the file system, and every connection asks for it."""


@cache
def _adapters() -> AdaptersMap:
    """Django's, but times are read by psycopg's loader, which is written in C."""
    ours = AdaptersMap(get_adapters_template(settings.USE_TZ, UTC))
    loader: Any = psycopg.adapters.get_loader(TIME, Format.TEXT)
    ours.register_loader("timestamptz", loader)
    return ours


class Cursor(base.ServerBindingCursor):
    """Django's cursor, which reads times in a sixth of the time.

    Django's own loader is written in Python because it can set any time zone. Psycopg's takes the
    zone of the connection, which Django sets to UTC.
    """

    @property
    def adapters(self) -> AdaptersMap:
        """How values are read and written; the same for each cursor."""
        return _adapters()

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, **more: Any
    ) -> Any:
        """As psycopg does, but prepare nothing that is to be planned for its values.

        Where the server only reads, as after a failover, its connections are left: the pool would
        lend them for hours, to calls, pages and jobs.
        """
        if PLANNED.get():
            prepare = False
        try:
            return super().execute(query, params, prepare=prepare, **more)  # type: ignore[misc]
        except psycopg.errors.ReadOnlySqlTransaction:
            _leave_pool()
            raise


def _leave_pool() -> None:
    """Close each connection of the pool once it is given back."""
    django: Any = connections[DEFAULT_DB_ALIAS]
    if django.pool:
        django.pool.drain()


class BoundedConnection(psycopg.Connection[Any]):
    """Psycopg's, which gives up a server that does not even end what takes too long.

    A server that is stopped, or whose disk hangs, acknowledges what it is sent and answers nothing.
    Each call would keep its thread until it goes on.
    """

    patience: float | None = PATIENCE
    """Seconds for the first questions, as long as a call waits for a connection; once the server is
    met, those of a statement and some more, or without end where statements have no limit."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As psycopg does. Raises OperationalError."""
        if timeout is not None or self.patience is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # an answer that comes later belongs to nothing
            raise


class NewestFirst(ConnectionPool[Any]):
    """A pool that lends the connection that came back last.

    Its process has its plans in the processor's caches still; connections lent in turn have not,
    and a call costs PostgreSQL half as much again.
    """

    def _get_ready_connection(self, timeout: float | None) -> Any:
        self._pool.rotate(1)  # lent from the left, given back at the right; called under the lock
        return super()._get_ready_connection(timeout)


class DatabaseWrapper(base.DatabaseWrapper):
    """The embedded PostgreSQL is started by its first process and stopped by its last."""

    isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    _lent: BoundedConnection | None = None
    _looked_at = 0.0

    def get_connection_params(self) -> dict[str, Any]:
        """Where to connect to; asked before every new connection, and once for a pool."""
        if not settings.DATABASE_URL:
            cluster_lock.take(cluster_of(settings.NEXUS_VAR))
        params: dict[str, Any] = super().get_connection_params()
        if params["cursor_factory"] is base.ServerBindingCursor:
            params["cursor_factory"] = Cursor
        return params

    def _set_autocommit(self, autocommit: bool) -> None:  # noqa: FBT001  as Django calls it
        """Ask the driver for a change only, which takes a lock to see that there is none."""
        if self.connection.autocommit != autocommit:
            super()._set_autocommit(autocommit)  # type: ignore[misc]

    @property
    def pool(self) -> NewestFirst | None:
        """Django's, which keeps one for each alias, but for the order of its connections."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        pools: dict[str, NewestFirst] = self._connection_pools  # type: ignore[attr-defined]
        if self.alias not in pools:
            pool = NewestFirst(
                connection_class=BoundedConnection,
                kwargs={**self.get_connection_params(), "autocommit": True},  # Django sets it later
                open=False,
                configure=self._configure_connection,  # type: ignore[attr-defined]
                **options,
            )
            pools.setdefault(self.alias, pool)  # another thread may have been first
        return pools[self.alias]

    def connect(self) -> None:
        """As Django does; of a connection that was lent before, only what each use begins with.

        The rest is done once for each connection of the pool. To do it for each call took a
        twentieth of the call's processor time.
        """
        pool = self.pool
        if pool is None:
            super().connect()
            return
        lent = self._lend(pool)
        if not hasattr(lent, SET_UP):
            self._connect_first(pool, lent)
            return
        self.connection = lent
        self.in_atomic_block = self.closed_in_transaction = False
        self.needs_rollback = self.errors_occurred = False
        self.savepoint_ids, self.atomic_blocks, self.run_on_commit = [], [], []
        self.health_check_done = True
        self.close_at = GIVEN_BACK_AT_ONCE
        self.set_autocommit(True)
        self._looked_at = time.monotonic()

    def ensure_connection(self) -> None:
        """Connect as Django does, also where the server ended the connection of a waiting thread.

        Work that no transaction is open for, as git's in the sandbox, may take minutes: what is
        recorded after it goes to another connection. Spec: wire 41.
        """
        now = time.monotonic()
        if self.connection and not self.in_atomic_block and now > self._looked_at + LOOKED_AT:
            self._looked_at = now
            if is_ended(self.connection):
                self.close()
        super().ensure_connection()

    def close_if_unusable_or_obsolete(self) -> None:
        """As Django does at the end of a request, but never connect anew in order to give back.

        Where the server is down that fails, and the answer that is ready would be lost.
        """
        self._looked_at = time.monotonic()
        super().close_if_unusable_or_obsolete()

    def _connect_first(self, pool: NewestFirst, lent: BoundedConnection) -> None:
        """Let Django make a connection ready; the pool has it again where that fails."""
        self._lent = lent
        try:
            super().connect()
            _meet_server(lent)
        finally:
            self._lent = None
            if self.connection is None:
                pool.putconn(lent)
        setattr(lent, SET_UP, True)

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection:
        """The one that the pool has lent; without a pool a new one."""
        new: psycopg.Connection = self._lent or super().get_new_connection(conn_params)
        return new

    def _lend(self, pool: NewestFirst) -> BoundedConnection:
        """A connection of the pool that the server has not ended meanwhile.

        After a restart or a failover every connection in the pool is dead; each is thrown away here
        before a call meets it. Looking costs no round trip.
        """
        pool.open()
        while True:
            connection: BoundedConnection = pool.getconn()
            if not is_ended(connection):
                return connection
            connection.close()
            pool.putconn(connection)  # which makes a fresh one instead


def _meet_server(new: BoundedConnection) -> None:
    """Forget what was read from another server, before anything is read from this one.

    And set how long this process's statements may take there.
    """
    found, limit = new.execute(SERVER, _longest_statement).fetchone() or ("", 0)
    new.patience = limit + GRACE if limit else None
    if found != _server[0]:
        _server[0] = found
        server_changed()


def limit_statements() -> None:
    """End each statement of this process's later connections that takes too long.

    For processes that answer calls: what keeps one busy for minutes was not meant to.
    """
    _longest_statement[0] = CALL_STATEMENT


def is_ended(connection: psycopg.Connection) -> bool:
    """Whether the server has said goodbye: it sends nothing else to a connection at rest."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
