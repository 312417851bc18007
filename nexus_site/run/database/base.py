"""PostgreSQL as NEXUS uses it: the embedded server is claimed, and no connection is dead."""

import select
from functools import cache
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

from nexus_site.run import lease
from nexus_site.run.postgres import Cluster

cluster_of = cache(Cluster.under)
"""The cluster of a folder; finding it asks the file system, and every connection asks for it."""


class DatabaseWrapper(base.DatabaseWrapper):
    """The embedded PostgreSQL is started by its first process and stopped by its last."""

    def get_connection_params(self) -> dict[str, Any]:
        """Where to connect to; asked before every new connection, and once for a pool."""
        if not settings.DATABASE_URL:
            lease.take(cluster_of(settings.NEXUS_VAR))
        params: dict[str, Any] = super().get_connection_params()
        return params

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
