"""Whether a database is of an earlier or a later version of NEXUS than this one."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


def is_earlier(executor: MigrationExecutor) -> bool:
    """Whether the executor's database lacks migrations that this version has."""
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def later_migrations(applied: Iterable[tuple[str, str]], loader: MigrationLoader) -> list[str]:
    """The migrations of a database that this version does not have, by room and name."""
    known = loader.disk_migrations
    return [
        f"{room} {name}"
        for room, name in sorted(applied)
        if room in settings.ROOMS and (room, name) not in known
    ]
