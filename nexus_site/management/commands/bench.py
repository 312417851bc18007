"""`manage.py bench`: calls per second and their times, beside PostgreSQL's own and the floor."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from nexus_site.bench import company, decisions, postgres, tasks
from nexus_site.bench.load import Rate, Request, measure, post
from nexus_site.run import web

CLIENTS = (1, 8, 32)
CALL = "/api/v1/tools/"


class Command(BaseCommand):
    """Measure; print; judge nothing."""

    help = "Measure calls per second beside PostgreSQL's own rate and a bare view's, in one run"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long, how large."""
        parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement")
        parser.add_argument("--mails", type=int, default=1_000_000, help="mails in the large box")
        parser.add_argument("--tasks", type=int, default=1_000_000, help="tasks in the list")
        parser.add_argument("--workers", type=int, default=2, help="web processes")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every measurement in a database of its own."""
        with company.own_database() as url:
            organisation, keys = company.found()
            with serving(url, workers=options["workers"]) as port:
                self.rows(
                    lambda request, clients, expected: measure(
                        port=port,
                        request=request,
                        clients=clients,
                        seconds=options["seconds"],
                        expected=expected,
                    ),
                    organisation,
                    keys,
                    options,
                )
        for line in decisions.measured():
            self.stdout.write(line)

    def rows(
        self,
        rate: Callable[[Request, int, int], Rate],
        organisation: Any,
        keys: dict[str, str],
        options: dict[str, Any],
    ) -> None:
        """One line for each measurement and number of clients."""
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
        self.stdout.write(f"{'':34}{'clients':>8}{'calls/s':>10}{'p50 ms':>9}{'p99 ms':>9}")
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
        company.fill_mailbox(organisation, "devops_worker", options["mails"])
        for clients in CLIENTS:
            base = self.line("read_inbox, 1 k mails", clients, rate(lambda: small, clients, 200))
            self.line(
                f"read_inbox, {options['mails']} mails",
                clients,
                rate(lambda: large, clients, 200),
                base,
            )
        for clients in CLIENTS:
            self.accepts(rate, organisation, keys, clients)
        tasks.rows(self.line, rate, organisation, keys, count=options["tasks"], clients=CLIENTS)

    def accepts(
        self,
        rate: Callable[[Request, int, int], Rate],
        organisation: Any,
        keys: dict[str, str],
        clients: int,
    ) -> None:
        """Accept contracts issued for the purpose, each once."""
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
        self.line("create_contract", clients, rate(lambda: issue, clients, 200))
        waiting = pending_of(organisation)
        calls: Iterator[bytes] = iter(
            [
                post(CALL + "accept_contract", {"contract_id": c}, keys["backend_worker"])
                for c in waiting
            ]
        )
        self.line("accept_contract", clients, rate(lambda: next(calls), clients, 200))

    def line(self, what: str, clients: int, rate: Rate, beside: Rate | None = None) -> Rate:
        """Print one measurement, and its ratio where there is something beside it."""
        ratio = f"  ×{rate.per_second / beside.per_second:.2f}" if beside else ""
        wrong = f"  ({rate.unexpected} unexpected answers)" if rate.unexpected else ""
        self.stdout.write(
            f"{what:34}{clients:>8}{rate.per_second:>10.0f}{rate.p50:>9.2f}{rate.p99:>9.2f}"
            f"{ratio}{wrong}"
        )
        self.stdout.flush()
        return rate


def pending_of(organisation: Any) -> list[str]:
    """Ids of contracts nobody has accepted yet."""
    from contracts.models import Contract

    return list(
        Contract.objects.filter(organisation=organisation, state="pending").values_list(
            "pk", flat=True
        )
    )


@contextmanager
def serving(url: str, *, workers: int) -> Iterator[int]:
    """Run the real web processes on a free port, without a limit of calls; the port."""
    listening = web.listen(host="127.0.0.1", port=0)
    port = listening.getsockname()[1]
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "NEXUS_BENCH": "1",
        "NEXUS_RATE_PER_MINUTE": str(10**9),
        "NEXUS_RATE_BURST": str(10**9),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "nexus_site.run.web", str(listening.fileno())],
            env=environment,
            pass_fds=[listening.fileno()],
        )
        for _ in range(workers)
    ]
    try:
        wait_for(port, processes)
        yield port
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(10)
        listening.close()


def wait_for(port: int, processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait until both processes answer. Raises RuntimeError when one has ended."""
    for _ in itertools.repeat(None, 200):
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("a web process did not start")
        try:
            with socket.create_connection(("127.0.0.1", port), 0.2) as probe:
                probe.sendall(
                    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
                )
                if probe.recv(12)[9:12] == b"200":
                    time.sleep(1.5)
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError("the web processes did not answer in 20 s")
