"""`manage.py migrate`: Django's, which a kill leaves whole at every moment."""

import gc
from contextlib import nullcontext
from typing import Any

import django_fsm
from django.core.management.commands import migrate
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models.signals import ModelSignal

from nexus_site.run import roles
from nexus_site.run.alone import alone_on_database
from nexus_site.run.historical import made_rarely

# A first migration makes a historical model 3,000 times. Each field of a state listened from then
# on to look for transitions in every later one, and there are none: a third of the time.
django_fsm.class_prepared = ModelSignal()  # type: ignore[attr-defined]  # as it imports that


class WholeExecutor(MigrationExecutor):
    """Applies a migration and writes the row that says so in one transaction.

    Django writes that row after the commit where a migration adds foreign keys or indexes at its
    end. Killed in between, it would apply the migration again, and find its tables there.
    """

    def migrate(self, *args: Any, **options: Any) -> Any:
        """Migrate; what was imported is no garbage, of which historical models leave much."""
        gc.freeze()
        return super().migrate(*args, **options)

    def _migrate_all_forwards(self, *args: Any, **options: Any) -> Any:
        with made_rarely():
            return super()._migrate_all_forwards(*args, **options)  # type: ignore[misc]  # Django's

    def apply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        """Apply it wholly or not at all, unless it asks for no transaction."""
        whole = transaction.atomic(self.connection.alias) if migration.atomic else nullcontext()
        with whole:
            return super().apply_migration(state, migration, *args, **options)


migrate.MigrationExecutor = WholeExecutor  # type: ignore[attr-defined]  # as that command names it


class Command(migrate.Command):
    """Django's, as the owner of the tables, one at a time: a second finds nothing left to do."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Become the owner first: Django's checks of the database connect already."""
        roles.become_owner()
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate when no other process does, on this machine or another."""
        with alone_on_database():
            super().handle(*args, **options)
