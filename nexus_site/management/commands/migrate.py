"""`manage.py migrate`: Django's, which a kill leaves whole at every moment."""

from contextlib import nullcontext
from typing import Any

from django.core.management.commands import migrate
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor


class WholeExecutor(MigrationExecutor):
    """Applies a migration and writes the row that says so in one transaction.

    Django writes that row after the commit where a migration adds foreign keys or indexes at its
    end. Killed in between, it would apply the migration again, and find its tables there.
    """

    def apply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        """Apply it wholly or not at all, unless it asks for no transaction."""
        whole = transaction.atomic(self.connection.alias) if migration.atomic else nullcontext()
        with whole:
            return super().apply_migration(state, migration, *args, **options)


migrate.MigrationExecutor = WholeExecutor  # type: ignore[attr-defined]  # as that command names it
Command = migrate.Command
