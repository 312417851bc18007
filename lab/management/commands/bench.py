"""`manage.py bench`: calls per second; PostgreSQL's own rate and the floor to compare."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from lab.bench import company, decisions, events, mcp, postgres, sweeps, tasks
from lab.bench.load import Rate, Request, always, measure, post
from lab.bench.served import serving

CLIENTS = (1, 8, 32)
CALL = "/api/v1/tools/"
PARTS = ("mail", "mcp", "events", "contracts", "tasks", "sweeps", "decisions")


class Command(BaseCommand):
    """Measure; print; judge nothing."""

    help = "Measure calls per second against PostgreSQL's own rate and a bare view's, in one run"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long, how large."""
        parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement")
        parser.add_argument("--mails", type=int, default=1_000_000, help="mails in the large box")
        parser.add_argument("--tasks", type=int, default=1_000_000, help="tasks in the list")
        parser.add_argument("--due", type=int, default=100_000, help="due rows to sweep")
        parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="these parts")
        parser.add_argument("--workers", type=int, default=2, help="web processes")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every measurement in a database of its own."""
        with company.own_database() as url:
            organisation, keys = company.found()
            with serving(url, workers=options["workers"]) as served:
                self.stdout.write(f"{'':38}{'clients':>8}{'calls/s':>10}{'p50 ms':>9}{'p99 ms':>9}")
                rate = partial(rate_of, port=served.port, seconds=options["seconds"])
                parts: dict[str, Callable[[], object]] = {
                    "mail": lambda: self.mails(rate, organisation, keys, options["mails"]),
                    "mcp": lambda: mcp.rows(
                        self.line, self.stdout.write, rate, served, keys, clients=CLIENTS
                    ),
                    "events": lambda: events.rows(
                        self.line, self.stdout.write, served, organisation, keys
                    ),
                    "contracts": lambda: self.contracts(rate, organisation, keys),
                    "tasks": lambda: tasks.rows(
                        self.line, rate, organisation, keys, count=options["tasks"], clients=CLIENTS
                    ),
                    "sweeps": lambda: sweeps.rows(
                        self.line, self.stdout.write, organisation, due=options["due"]
                    ),
                    "decisions": lambda: self.stdout.write("\n".join(decisions.measured())),
                }
                for name in options["only"]:
                    parts[name]()

    def mails(
        self,
        rate: Callable[[Request, int, int], Rate],
        organisation: Any,
        keys: dict[str, str],
        many: int,
    ) -> None:
        """Mails sent, refused and listed, and bare views; a small inbox and a large one."""
        agents = {a.handle: a.id for a in organisation.agents.all()}
        company.fill_mailbox(organisation, "qa_worker", 1000)
        mail = {
            "to": "it_manager",
            "type": "info",
            "subject": "Status",
            "body": "All is well. " * 20,
        }
        send = post(CALL + "send_mail", dict(mail), keys["backend_worker"])
        denied = post(CALL + "send_mail", {**mail, "to": "ceo"}, keys["backend_worker"])
        floor = post(
            "/api/bench/send",
            {**mail, "recipient_id": agents["it_manager"]},
            keys["backend_worker"],
        )
        page = {"status": "all"}
        small = post(CALL + "read_inbox", dict(page), keys["qa_worker"])
        large = post(CALL + "read_inbox", dict(page), keys["devops_worker"])
        bare = post("/api/bench/inbox", dict(page), keys["qa_worker"])
        for clients in CLIENTS:
            script = postgres.send_script(organisation.id, agents)
            self.line(
                "PostgreSQL itself: mail + event",
                clients,
                postgres.measure(script=script, clients=clients, seconds=3),
            )
            base = self.line("floor: bare view, send", clients, rate(lambda: floor, clients, 200))
            sent = self.line("send_mail", clients, rate(lambda: send, clients, 200), base)
            self.line("send_mail, denied", clients, rate(lambda: denied, clients, 403), sent)
        for clients in CLIENTS:
            script = postgres.inbox_script(agents["qa_worker"])
            self.line(
                "PostgreSQL itself: inbox page",
                clients,
                postgres.measure(script=script, clients=clients, seconds=3),
            )
            base = self.line("floor: bare view, inbox", clients, rate(lambda: bare, clients, 200))
            self.line("read_inbox, 1 k mails", clients, rate(lambda: small, clients, 200), base)
        company.fill_mailbox(organisation, "devops_worker", many)
        for clients in CLIENTS:
            base = self.line("read_inbox, 1 k mails", clients, rate(lambda: small, clients, 200))
            self.line(
                f"read_inbox, {many} mails",
                clients,
                rate(lambda: large, clients, 200),
                base,
            )

    def contracts(
        self, rate: Callable[[Request, int, int], Rate], organisation: Any, keys: dict[str, str]
    ) -> None:
        """Issue contracts, and accept those that were issued, each once."""
        issue = post(
            CALL + "create_contract",
            {
                "to": "backend_worker",
                "title": "Bench",
                "body": "Accept me",
                "priority": "medium",
                "deadline": (timezone.now() + timedelta(days=1)).isoformat(),
            },
            keys["it_manager"],
        )
        for clients in CLIENTS:
            self.line("create_contract", clients, rate(always(issue), clients, 200))
            calls: Iterator[bytes] = iter(
                [
                    post(CALL + "accept_contract", {"contract_id": c}, keys["backend_worker"])
                    for c in pending_of(organisation)
                ]
            )
            self.line("accept_contract", clients, rate(calls.__next__, clients, 200))

    def line(self, what: str, clients: int, rate: Rate, compared: Rate | None = None) -> Rate:
        """Print one measurement, and its ratio where it is compared."""
        ratio = f"  ×{rate.per_second / compared.per_second:.2f}" if compared else ""
        wrong = f"  ({rate.unexpected} unexpected answers)" if rate.unexpected else ""
        self.stdout.write(
            f"{what:38}{clients:>8}{rate.per_second:>10.0f}{rate.p50:>9.2f}{rate.p99:>9.2f}"
            f"{ratio}{wrong}"
        )
        self.stdout.flush()
        return rate


def rate_of(request: Request, clients: int, expected: int, *, port: int, seconds: float) -> Rate:
    """What a load on the web processes measures."""
    return measure(port=port, request=request, clients=clients, seconds=seconds, expected=expected)


def pending_of(organisation: Any) -> list[str]:
    """Ids of contracts that are not accepted yet."""
    from contracts.models import Contract

    return list(
        Contract.objects.filter(organisation=organisation, state="pending").values_list(
            "pk", flat=True
        )
    )
