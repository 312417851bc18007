"""`manage.py board_webhook ORG`: what the receiver of an organisation's notices needs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from mailroom.outgoing.webhook import secret_of
from orgchart.commands import organisation_of
from orgchart.organisation_settings import merged


class Command(BaseCommand):
    """Prints where notices to the Board are posted, and the secret that signs them."""

    help = "The address of notices to the Board, and the secret that their receiver verifies."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which organisation's."""
        parser.add_argument("organisation", metavar="ORG")

    def handle(self, *_args: Any, **options: Any) -> None:
        """The address (where there is one), then the secret, each on a line of its own."""
        slug = options["organisation"]
        address = merged(organisation_of(slug).settings)["board_webhook"]
        if not address:
            self.stderr.write(f"no address yet: manage.py org set {slug} board_webhook=https://…")
        else:
            self.stdout.write(address)
        self.stdout.write(secret_of(slug))
