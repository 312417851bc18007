"""Whether a database is of a later version of NEXUS than this one."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db.migrations.loader import MigrationLoader

Migrations = Iterable[tuple[str, str]]


def later_migrations(applied: Migrations, loader: MigrationLoader) -> list[str]:
    """The migrations of a database that this version does not have, by room and name."""
    known = loader.disk_migrations
    return [
        f"{room} {name}"
        for room, name in sorted(applied)
        if room in settings.ROOMS and (room, name) not in known
    ]
