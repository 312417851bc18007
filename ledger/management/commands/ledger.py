"""`manage.py ledger`: seal, verify, export, and the keys."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.actions import Action
from core.blank import is_blank
from core.database import database_now
from core.params import FIRST_YEAR, LAST_YEAR
from core.people import operator
from ledger import keys, offline
from ledger.chain_end import last_seal
from ledger.export import Selection, write_export
from ledger.models import Event
from ledger.rules import Keys
from ledger.seal_format import write_public
from ledger.sealer import ForeignEnd, TransactionsWentBack, adopt_head, seal_events
from ledger.services import record
from ledger.verification import VerificationReport, verify_ledger


class Verb(StrEnum):
    """What `manage.py ledger` can do."""

    SEAL = "seal"
    VERIFY = "verify"
    EXPORT = "export"
    PUBLIC_KEY = "public-key"
    NEW_KEY = "new-key"
    ADOPT = "adopt"


class Command(BaseCommand):
    """Seals, verifies and exports what happened."""

    help = "Seal, verify and export the ledger."
    requires_system_checks: list[str] = []  # a file is verified without a database
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser(Verb.SEAL, help="seal everything that has committed")
        verify = verbs.add_parser(Verb.VERIFY, help="find the first thing wrong (exit 1)")
        verify.add_argument("--file", type=Path, help="an export, instead of the database")
        verify.add_argument("--public-key", help="base64 or a file; else the pinned keys")
        export = verbs.add_parser(Verb.EXPORT, help="write an export; the public key verifies it")
        export.add_argument("path", type=Path, metavar="FILE|DIR")
        export.add_argument("--organisation", type=int, help="only this organisation's (its id)")
        export.add_argument("--since", type=moment, help="only from this time on (ISO 8601)")
        export.add_argument("--until", type=moment, help="only before this time (ISO 8601)")
        verbs.add_parser(Verb.PUBLIC_KEY, help="print the trusted public keys, one to a line")
        verbs.add_parser(Verb.NEW_KEY, help="make a signing key if there is none")
        adopt = verbs.add_parser(Verb.ADOPT, help="accept a restored or moved chain as it ends")
        adopt.add_argument("--reason", required=True, help="why; it becomes an event")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run one verb."""
        try:
            match Verb(options["verb"]):
                case Verb.SEAL:
                    self.stdout.write(f"{seal_events(now=database_now())} seals made")
                case Verb.VERIFY:
                    self._verify(options)
                case Verb.EXPORT:
                    self._export(options)
                case Verb.PUBLIC_KEY:
                    lines = [write_public(public) for public in keys.trusted().values()]
                    self.stdout.write("\n".join(lines))
                case Verb.NEW_KEY:
                    self.stdout.write(write_public(keys.make_key().public))
                case Verb.ADOPT:
                    self._adopt(options["reason"])
        except (keys.KeyMissing, ForeignEnd, TransactionsWentBack, OSError, ValueError) as error:
            raise CommandError(str(error)) from None

    def _verify(self, options: dict[str, Any]) -> None:
        trusted = keys.trusted() if not options["public_key"] else _keys(options["public_key"])
        if options["file"] is not None:
            report = offline.verify_file(options["file"], trusted)
            self._answer(offline.describe(report), wrong=report.finding is not None)
            return
        found = verify_ledger(trusted=trusted, now=database_now())
        self._answer(describe(found), wrong=found.finding is not None)

    def _adopt(self, reason: str) -> None:
        if is_blank(reason):
            raise CommandError("--reason is blank: say why the chain is accepted as it ends here")
        before, last = keys.known_head(), last_seal()
        details = {
            "before": list(before) if before else None,
            "now": [last.number, last.digest.hex()] if last else None,
        }
        with transaction.atomic():
            record(
                Action.LEDGER_ADOPTED,
                by=operator(),
                at=database_now(),
                reason=reason,
                details=details,
            )
        adopt_head(last)
        self.stdout.write(f"the chain ends with seal {last.number if last else 0} here")

    def _export(self, options: dict[str, Any]) -> None:
        number = options["organisation"]
        if number is not None and not Event.objects.filter(organisation_id=number).exists():
            raise CommandError(
                f"no event is of an organisation with the id {number}; "
                "the id is in the address of the organisation's page"
            )
        now = database_now()
        seal_events(now=now)
        chosen = {name: options[name] for name in ("organisation", "since", "until")}
        signer = keys.signer(may_create=last_seal() is None)
        path = write_export(options["path"], selection=Selection(**chosen), signer=signer, now=now)
        self.stdout.write(str(path))

    def _answer(self, sentence: str, *, wrong: bool) -> None:
        if wrong:
            raise CommandError(sentence, returncode=1)
        self.stdout.write(sentence)


def describe(report: VerificationReport) -> str:
    """Return one sentence on the ledger's state, and how far it reaches."""
    reach = f"; it reaches seal {report.seals} of {report.reaches}" if report.reaches else ""
    if report.finding:
        return f"WRONG {report.finding}{reach}"
    counts = f"{report.seals} seals, {report.events} events sealed, {report.unsealed} not yet"
    return f"OK {counts}{reach}"


def moment(text: str) -> datetime:
    """Read a time; one without a zone is UTC. Raises ValueError, as argparse expects."""
    at = datetime.fromisoformat(text)
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _keys(text: str) -> Keys:
    try:
        return offline.read_keys(text)
    except ValueError:
        raise CommandError("--public-key is neither base64 of 32 bytes nor a file") from None
