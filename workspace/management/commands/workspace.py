"""`manage.py workspace provision|doctor`: agents' users and folders; which walls hold here."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from core.decision import Denied
from workspace.provisioning import provision, who_agents_are
from workspace.sandbox import driver
from workspace.sandbox.doctor import examine
from workspace.sandbox.weaknesses import find_weaknesses


def become_root() -> None:
    """Run this very command as root, with this installation's settings. Raises CommandError."""
    sudo = shutil.which("sudo")
    if sudo is None:
        raise CommandError("sudo is not installed here: run the command as root")
    kept = ",".join(sorted(set(os.environ) & settings.ENVIRONMENT_NAMES))
    words = [sudo, f"--preserve-env={kept}", "--", sys.executable, *sys.argv]
    os.execv(sudo, words)  # noqa: S606  no shell: these very words


class Command(BaseCommand):
    """Prepare this machine for the agents' hands, and try the walls around them."""

    help = "Make the agents' users and folders; try which walls hold on this machine"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One subcommand for each verb."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        provision = verbs.add_parser(
            "provision", help="make what is missing; run again, it does nothing"
        )
        provision.add_argument(
            "--sudo",
            action="store_true",
            help="become root through sudo: an own user for each agent",
        )
        verbs.add_parser("doctor", help="try each wall; exit 1 if one does not hold")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run one verb."""
        if options["verb"] == "provision":
            if options["sudo"] and os.geteuid() != 0:
                become_root()
            self._provision()
        else:
            self._examine()

    def _provision(self) -> None:
        try:
            done = provision()
        except Denied as refusal:
            raise CommandError(refusal.deny.message) from refusal
        except PermissionError as problem:
            raise CommandError(f"{problem}: run it as who made it, or with --sudo") from None
        for line in done:
            self.stdout.write(line)
        self.stdout.write(f"{len(done)} changes; {who_agents_are()}")
        owner = Path(settings.NEXUS_VAR).stat().st_uid
        if os.geteuid() == 0 and owner != 0:
            self.stdout.write(
                f"this installation belongs to the user {owner}: from now on start its server as "
                "root (`sudo make up`), because that user cannot enter the agents' homes"
            )

    def _examine(self) -> None:
        walls = driver.strongest()
        if isinstance(walls, str):
            self.stdout.write(f"sandbox: NONE ({walls})")
        else:
            self.stdout.write(f"sandbox: {walls.way}")
        findings = examine()
        width = max(len(finding.wall) for finding in findings)
        for finding in findings:
            mark = "holds " if finding.holds else "MISSING"
            self.stdout.write(f"{finding.wall:<{width}}  {mark:<7}  {finding.seen}")
        for weakness in find_weaknesses():
            self.stdout.write(f"weaker than the full wall: {weakness}")
        missing = [finding.wall for finding in findings if not finding.holds]
        if missing:
            raise CommandError(f"{len(missing)} of {len(findings)} walls do not hold")
        self.stdout.write(f"all {len(findings)} walls hold")
