"""`manage.py backup`: a copy of the installation, taken while it works."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.database import database_now
from nexus_site.run import roles
from nexus_site.run.backup import CannotCopy, back_up
from nexus_site.run.postgres import PostgresUnavailable


class Command(BaseCommand):
    """Copies the database and the company tree into a folder, and the keys into a file apart."""

    help = "Copy the database and the company tree; with --keys the keys as well, elsewhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Say where to."""
        parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
        parser.add_argument("--keys", type=Path, help="a new file for the keys, on another disk")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make it and say what it holds."""
        roles.become_owner()
        try:
            made = back_up(options["folder"], keys=options["keys"], now=database_now())
        except (CannotCopy, PostgresUnavailable, OSError) as problem:
            raise CommandError(str(problem)) from None
        reach = f"seal {made.seal[0]}" if made.seal else "no seal yet"
        self.stdout.write(f"{options['folder']}: database and company tree, at least to {reach}")
        if options["keys"] is None:
            self.stdout.write("The keys are not in it. Keep them with: --keys FILE")
