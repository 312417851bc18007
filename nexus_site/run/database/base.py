"""Before its first connection, a process claims the embedded server."""

from functools import cache
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base

from nexus_site.run import lease
from nexus_site.run.postgres import Cluster

cluster_of = cache(Cluster.under)
"""The cluster of a folder; finding it asks the file system, and every connection asks for it."""


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL, started by its first process and stopped by its last."""

    def get_connection_params(self) -> dict[str, Any]:
        """Where to connect to; asked before every new connection, and once for a pool."""
        lease.take(cluster_of(settings.NEXUS_VAR))
        params: dict[str, Any] = super().get_connection_params()
        return params
