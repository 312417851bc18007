"""`manage.py demo`: one day of the NEXUS company over HTTP; exit 1 for an unexpected answer."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from lab.demo.play import NotRunning, play_day


class Command(BaseCommand):
    """Nine clients with real keys play one day against a running `make up`."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where the company is, and with which keys to enter."""
        host = "127.0.0.1" if settings.HOST in {"0.0.0.0", "::"} else settings.HOST  # noqa: S104
        parser.add_argument("--url", default=f"http://{host}:{settings.PORT}")
        parser.add_argument("--keys", type=Path, default=settings.NEXUS_KEYS / "nexus.json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Play the day; exit 1 when an answer was not the expected one."""
        try:
            keys = json.loads(options["keys"].read_text("utf-8"))
            court = options["keys"].with_name("constitution.json")
            if court.exists():
                keys = json.loads(court.read_text("utf-8")) | keys
        except (OSError, ValueError) as problem:
            raise CommandError(
                f"no agent keys in {options['keys']} ({problem}); `make up` writes them"
            ) from problem
        colour = bool(getattr(sys.stdout, "isatty", lambda: False)()) and not options["no_color"]
        try:
            right = play_day(url=options["url"], keys=keys, out=self.stdout, colour=colour)
        except NotRunning as problem:
            raise CommandError(str(problem)) from problem
        if not right:
            raise SystemExit(1)
