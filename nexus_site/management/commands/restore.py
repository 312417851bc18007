"""`manage.py restore`: a backup into an empty database, then the ledger's own verdict on it."""

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from core.terminal import printable_lines
from ledger import keys
from ledger.management.commands.ledger import describe
from ledger.models import Seal
from ledger.rules import SealFault
from ledger.verification import verify_ledger
from nexus_site.run import roles
from nexus_site.run.backup import CannotCopy, Manifest, restore
from nexus_site.run.postgres import PostgresUnavailable
from nexus_site.run.versions import is_earlier


class Command(BaseCommand):
    """Restores what `manage.py backup` wrote; overwrites nothing."""

    help = "Restore a backup into an empty database and company tree, and verify the ledger."
    requires_migrations_checks = False
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Say where from."""
        parser.add_argument("folder", type=Path, help="what `manage.py backup` wrote")
        parser.add_argument("--keys", type=Path, help="the file of the keys; existing ones stay")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Restore and verify. Exit 1 if the copy is not whole.

        What waits for its seal is judged by the time of the backup. A copy that ends before the
        last seal that was seen is restored; the answer says how far it reaches, and `ledger adopt`
        accepts it.
        """
        roles.become_owner()
        try:
            manifest = restore(options["folder"], keys=options["keys"])
        except (CannotCopy, PostgresUnavailable, OSError) as problem:
            raise CommandError(printable_lines(str(problem))) from None
        try:
            if is_earlier(MigrationExecutor(connection)):
                self.stdout.write("It is of an earlier version: the next start migrates it.")
            self._require_last_seal(manifest)
            report = verify_ledger(trusted=keys.trusted(), now=datetime.fromisoformat(manifest.at))
        except (keys.KeyMissing, DatabaseError, ValueError) as problem:
            raise CommandError(f"restored, but not verified: {problem}") from None
        if report.finding and report.finding.fault is not SealFault.SEAL_HEAD:
            raise CommandError(f"restored, but not verified: {describe(report)}")
        self.stdout.write(f"restored from {manifest.at}. Ledger: {describe(report)}")

    def _require_last_seal(self, manifest: Manifest) -> None:
        if manifest.seal is None:
            return
        row = Seal.objects.filter(number=manifest.seal[0]).first()
        if row is None or bytes(row.digest).hex() != manifest.seal[1]:
            raise CommandError(f"seal {manifest.seal[0]}, the last when it was made, is not in it")
