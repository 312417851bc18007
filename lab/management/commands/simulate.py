"""`manage.py simulate`: hours of a company in minutes; what fired, when, how late, how often."""

from __future__ import annotations

import random
import time
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections
from django.utils import timezone

from lab.bench.company import own_database
from lab.simulation.company import callers, found_company
from lab.simulation.run import SKIPPED, Simulation

ONCE = {
    "an escalation settled twice": """
        SELECT subject FROM ledger_event WHERE action = 'escalation.unanswered'
        GROUP BY subject HAVING count(*) > 1""",
    "a CEO told twice of one thread": """
        SELECT subject FROM ledger_event WHERE action = 'escalation.ceo_told'
        GROUP BY subject HAVING count(*) > 1""",
    "a deadline told twice": """
        SELECT subject FROM ledger_event WHERE action IN ('contract.reminded', 'contract.overdue')
        GROUP BY subject, action HAVING count(*) > 1""",
    "an approval called off twice": """
        SELECT subject FROM ledger_event WHERE action = 'approval.expired'
        GROUP BY subject HAVING count(*) > 1""",
    "a frame ended twice": """
        SELECT subject FROM ledger_event
        WHERE action IN ('frame.returned', 'frame.failed', 'frame.cancelled')
        GROUP BY subject HAVING count(*) > 1""",
}
"""What must never be found after a run; each query finds it if it is there."""


def forget_power_cuts() -> None:
    """A played company need not survive one: its commits wait for no disk."""
    with connection.cursor() as cursor:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    connections.close_all()
    connection.close_pool()  # type: ignore[attr-defined]


class Command(BaseCommand):
    """Run, account, and fail if anything was left over or done twice."""

    help = "Run a synthetic company against the real services with a stepped clock"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long, how many, how busy."""
        parser.add_argument("--hours", type=float, default=24)
        parser.add_argument("--agents", type=int, default=500)
        parser.add_argument("--calls", type=int, default=3, help="calls in each simulated minute")
        parser.add_argument("--seed", type=int, default=1)

    def handle(self, *args: Any, **options: Any) -> None:
        """Simulate in a database of its own, which is dropped at the end."""
        begun = time.monotonic()
        with own_database("nexus_simulation"):
            forget_power_cuts()
            start = timezone.now().replace(second=0, microsecond=0)
            policy = found_company(agents=options["agents"], now=start)
            simulation = Simulation(
                policy=policy,
                people=callers(policy),
                start=start,
                now=start,
                dice=random.Random(options["seed"]),  # noqa: S311  decides a play, guards nothing
            )
            until = start + timedelta(hours=options["hours"])
            for _ in simulation.run(until=until, calls_per_step=options["calls"]):
                pass
            wrong = self.twice()
        self.report(simulation, options, time.monotonic() - begun)
        wrong += [
            f"{account.left} rows left over on {name}"
            for name, account in simulation.accounts.items()
            if account.left
        ]
        if wrong:
            raise CommandError("; ".join(wrong))

    def report(self, simulation: Simulation, options: dict[str, Any], seconds: float) -> None:
        """What happened."""
        self.stdout.write(
            f"{options['hours']:g} hours of {options['agents']} agents in {seconds:.0f} s"
        )
        for name, number in sorted(simulation.calls.items()):
            self.stdout.write(f"  {number:7} {name}")
        for name, account in simulation.accounts.items():
            for line in account.lines(name, simulation.start):
                self.stdout.write(line)
        self.stdout.write(f"not played: {', '.join(sorted(SKIPPED))}")

    def twice(self) -> list[str]:
        """Whatever happened more than once."""
        found = []
        with connection.cursor() as cursor:
            for what, query in ONCE.items():
                cursor.execute(query)
                rows = cursor.fetchall()
                if rows:
                    found.append(f"{what}: {rows[0][0]}")
        return found
