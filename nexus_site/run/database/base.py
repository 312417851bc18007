"""PostgreSQL as NEXUS uses it: the embedded server is claimed, and no connection is dead."""

import select
from functools import cache
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

from nexus_site.run import cluster_lock
from nexus_site.run.postgres import Cluster

cluster_of = cache(Cluster.under)
"""The cluster of a folder; finding it asks the file system, and every connection asks for it."""


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

    def get_connection_params(self) -> dict[str, Any]:
        """Where to connect to; asked before every new connection, and once for a pool."""
        if not settings.DATABASE_URL:
            cluster_lock.take(cluster_of(settings.NEXUS_VAR))
        params: dict[str, Any] = super().get_connection_params()
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
                kwargs={**self.get_connection_params(), "autocommit": True},  # Django sets it later
                open=False,
                configure=self._configure_connection,  # type: ignore[attr-defined]
                **options,
            )
            pools.setdefault(self.alias, pool)  # another thread may have been first
        return pools[self.alias]

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection:
        """A connection from the pool that the server has not ended meanwhile.

        After a restart or a failover every connection in the pool is dead; each is thrown away here
        before a call meets it. Looking costs no round trip.
        """
        while True:
            connection: psycopg.Connection = super().get_new_connection(conn_params)
            if self.pool is None or not is_ended(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)  # which makes a fresh one instead


def is_ended(connection: psycopg.Connection) -> bool:
    """Whether the server has said goodbye: it sends nothing else to a connection at rest."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
