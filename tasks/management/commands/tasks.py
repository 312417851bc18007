"""`manage.py tasks`: measures, files in and out, users' feedback."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.database import database_now
from core.decision import Denied
from core.people import operator
from orgchart.commands import organisation_of
from orgchart.models import Organisation
from orgchart.policy_cache import current_policy
from tasks.insight.measures import By, durations, measure_tasks
from tasks.intake import feedback, importing
from tasks.intake import files as task_files

DEFAULT_ORGANISATION = "dev-team"
"""The organisation that is used if none is named."""
MAX_DAYS = 36_500
"""Days that a report may look back."""


class Verb(StrEnum):
    """What `manage.py tasks` can do."""

    REPORT = "report"
    IMPORT = "import"
    EXPORT = "export"
    FEEDBACK = "feedback"
    HOOK = "hook"


class Command(BaseCommand):
    """Reports on tasks, and moves tasks and feedback in and out."""

    help = "Measures of tasks; tasks and feedback in and out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        report = verbs.add_parser(Verb.REPORT, help="the measures of tasks, and durations")
        report.add_argument("organisation", nargs="?", metavar="ORG", help="default: all of them")
        report.add_argument("--days", type=int, default=30, help="how far back (30)")
        for verb, text in ((Verb.IMPORT, "read JSON task files"), (Verb.EXPORT, "write them")):
            moving = verbs.add_parser(verb, help=text)
            moving.add_argument("where", nargs="+", metavar="[ORG] DIR|FILE")
        imports = verbs.choices[Verb.IMPORT]
        imports.add_argument("--skip-bad", action="store_true", help="import what is readable")
        hears = verbs.add_parser(Verb.FEEDBACK, help="read users' feedback from CSV or JSON")
        hears.add_argument("organisation", metavar="ORG")
        hears.add_argument("path", type=Path, metavar="FILE")
        hook = verbs.add_parser(Verb.HOOK, help="print the secret that signs feedback")
        hook.add_argument("organisation", metavar="ORG")
        hook.add_argument("--renew", action="store_true", help="create a new secret")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run one verb."""
        try:
            match Verb(options["verb"]):
                case Verb.REPORT:
                    self._report(options["organisation"], options["days"])
                case Verb.IMPORT:
                    self._import(*place_of(options["where"]), skip_bad=options["skip_bad"])
                case Verb.EXPORT:
                    self._export(*place_of(options["where"]))
                case Verb.FEEDBACK:
                    self._feedback(organisation_of(options["organisation"]), options["path"])
                case Verb.HOOK:
                    self._hook(organisation_of(options["organisation"]), renew=options["renew"])
        except Denied as refusal:
            raise CommandError(refusal.deny.message, returncode=1) from None

    def _report(self, slug: str | None, days: int) -> None:
        if not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--days is a number from 1 to {MAX_DAYS}, not {days}")
        until = database_now()
        since = until - timedelta(days=days)
        chosen = [organisation_of(slug)] if slug else Organisation.objects.order_by("slug")
        for organisation in chosen:
            self.stdout.write(f"{organisation.slug}, {since:%Y-%m-%d} to {until:%Y-%m-%d}")
            self._figures(organisation.id, since, until)

    def _figures(self, organisation_id: int, since: datetime, until: datetime) -> None:
        for figure in measure_tasks(organisation_id, since=since, until=until):
            unit = "" if figure.whole is None else " %"
            value = "nothing yet" if figure.value is None else f"{figure.value:g}{unit}"
            counted = "" if figure.whole is None else f" ({figure.part} of {figure.whole})"
            verdict = {None: "-", True: "reached", False: "missed"}[figure.reached]
            self.stdout.write(
                f"  {figure.measure.title}: {value}{counted}, target {figure.target}: {verdict}\n"
                f"    {figure.measure.definition}"
            )
        for by in By:
            for one in durations(organisation_id, by, since=since, until=until):
                self.stdout.write(
                    f"  {by} {one.name}: {one.count} completed, "
                    f"mean {one.mean / 60:.1f} min, median {one.median / 60:.1f} min"
                )

    def _import(self, organisation: Organisation, path: Path, *, skip_bad: bool) -> None:
        policy = current_policy(organisation.id)
        try:
            if not path.exists():
                raise CommandError(f"{path} does not exist")
            files = task_files.read_path(path, policy)
        except OSError as problem:
            raise CommandError(f"{path} cannot be read: {problem.strerror}") from None
        except task_files.UnfinishedExport as problem:
            raise CommandError(str(problem)) from None
        try:
            outcomes = importing.import_tasks(
                caller=operator(organisation.id, policy.version),
                policy=policy,
                files=files,
                skip_bad=skip_bad,
                now=database_now(),
            )
        except importing.NothingImported as nothing:
            self._print_results(nothing.outcomes)
            raise CommandError(
                "nothing was imported; correct the bad ones, or import the rest with --skip-bad",
                returncode=1,
            ) from None
        self._print_results(outcomes)
        results = [one.result for one in outcomes]
        counts = (f"{results.count(r)} {r}" for r in ("imported", "exists", "bad"))
        self.stdout.write(", ".join(counts))

    def _print_results(self, outcomes: list[importing.ImportResult]) -> None:
        for one in outcomes:
            self.stdout.write(f"{one.place}: {one.result}: {one.detail}")

    def _export(self, organisation: Organisation, path: Path) -> None:
        try:
            count = task_files.write_path(path, task_files.export_tasks(organisation.id))
        except OSError as problem:
            raise CommandError(
                f"{problem.filename or path} cannot be written: {problem.strerror}"
            ) from None
        self.stdout.write(f"{count} tasks written to {path}")

    def _feedback(self, organisation: Organisation, path: Path) -> None:
        try:
            if path.exists() and not path.is_file():
                raise CommandError(f"{path} is no plain file")
            content = path.read_bytes()
        except OSError as problem:
            raise CommandError(str(problem)) from None
        kept, known = feedback.add_feedback(
            caller=operator(organisation.id),
            items=feedback.read_file(path.name, content),
            source=path.name[:64],
            now=database_now(),
        )
        self.stdout.write(f"{kept} added, {known} already known")

    def _hook(self, organisation: Organisation, *, renew: bool) -> None:
        who = operator(organisation.id)
        with transaction.atomic():  # the old one stays where the new one could not be printed
            secret = feedback.open_hook(caller=who, now=database_now(), renew=renew)
            self.stdout.write(f"{settings.PUBLIC_URL}/api/v1/hooks/feedback/{organisation.slug}")
            self.stdout.write(secret)
            self.stdout.flush()


def place_of(arguments: list[str]) -> tuple[Organisation, Path]:
    """`[ORG] DIR|FILE`; without ORG the development team, or the only organisation there is."""
    if len(arguments) > 2:
        raise CommandError("give [ORG] DIR|FILE")
    if len(arguments) == 2:
        return organisation_of(arguments[0]), Path(arguments[1])
    slugs = list(Organisation.objects.order_by("slug").values_list("slug", flat=True))
    if DEFAULT_ORGANISATION not in slugs and len(slugs) != 1:
        raise CommandError(f"name the organisation: one of {', '.join(slugs) or 'none yet'}")
    return organisation_of(
        DEFAULT_ORGANISATION if DEFAULT_ORGANISATION in slugs else slugs[0]
    ), Path(arguments[0])
