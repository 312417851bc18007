"""`manage.py bench`: the product and hand-written floors, in turn; kept in docs/bench.json."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from lab.bench import calls, company, decisions, events, hands, sweeps, tiers, verifying
from lab.bench.contest import Contender, compete, warm_up
from lab.bench.report import Report
from lab.bench.served import Served, serving

CLIENTS = (1, 8, 32)
WARM_CLIENTS, WARM_SECONDS = 16, 0.7
SLICES = 3  # of one measurement over HTTP
ON_TASKS = ("read", "claim")
PARTS = (
    "send",
    "read",
    "claim",
    "organisations",
    "tiers",
    "events",
    "sweeps",
    "decisions",
    "hands",
    "ledger",
)


class Command(BaseCommand):
    """Measure; print; judge nothing."""

    help = "Measure the product and hand-written views, in turn, in a database of its own"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long, how large, where to keep it."""
        parser.add_argument("--seconds", type=float, default=1.5, help="length of each measurement")
        parser.add_argument("--repeats", type=int, default=3, help="measurements of each figure")
        parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
        parser.add_argument("--mails", type=int, default=500_000, help="mails in the large box")
        parser.add_argument("--tasks", type=int, default=500_000, help="tasks in the long list")
        parser.add_argument("--due", type=int, default=20_000, help="due rows to sweep")
        parser.add_argument("--events", type=int, default=800_000, help="events to verify")
        parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="these parts")
        parser.add_argument("--workers", type=int, default=2, help="web processes")
        parser.add_argument("--output", type=Path, default=settings.BASE_DIR / "docs/bench.json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every measurement, and keep what they found where all of them ran."""
        begun = time.perf_counter()
        with company.own_database() as url:
            report = Report(say=self._say)
            report.begin()
            found = company.found_company()
            with serving(url, workers=options["workers"]) as served:
                for name in options["only"]:
                    self._part(name, url, report, served, found, options)
            report.value("the whole of it", time.perf_counter() - begun, "s")
        if tuple(options["only"]) == PARTS:
            report.write(options["output"])

    def _part(
        self,
        name: str,
        url: str,
        report: Report,
        served: Served,
        found: company.Company,
        options: dict[str, Any],
    ) -> None:
        contests: dict[str, Callable[[Served, company.Company], Sequence[Contender]]] = {
            "send": calls.sending,
            "read": calls.reading,
            "claim": calls.claiming,
            "organisations": calls.in_turn,
        }
        others: dict[str, Callable[[], object]] = {
            "tiers": lambda: tiers.rows(
                report, url, found, repeats=options["repeats"], seconds=options["seconds"]
            ),
            "events": lambda: events.rows(report, served, found.organisation, found.keys),
            "sweeps": lambda: sweeps.rows(report, found.organisation, due=options["due"]),
            "decisions": lambda: decisions.rows(report),
            "ledger": lambda: verifying.rows(
                report, found.organisation.id, count=options["events"]
            ),
            "hands": lambda: self._say("\n".join(hands.measured())),
        }
        if name == "read":
            found.fill_mailbox("qa_worker", count=1000, unread=500)
            found.fill_mailbox("devops_worker", count=options["mails"], unread=500)
            found.fill_tasks(count=10_000, copy=1)
        if name == next((part for part in options["only"] if part in ON_TASKS), None):
            found.fill_tasks(count=options["tasks"])  # once, for all of them
        if name in contests:
            contenders = contests[name](served, found)
            warm_up(contenders, clients=WARM_CLIENTS, seconds=WARM_SECONDS)
            for clients in options["clients"]:
                figures = compete(
                    contenders,
                    served=served,
                    clients=clients,
                    repeats=options["repeats"],
                    seconds=options["seconds"],
                    slices=SLICES,
                )
                report.contest(clients, figures)
        else:
            others[name]()

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
