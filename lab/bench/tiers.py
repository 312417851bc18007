"""What a second web machine adds: web tiers of a limited processor share, on one PostgreSQL.

A machine with two cores cannot give a core to each of two tiers, one to PostgreSQL and one to the
load. So each tier is held to a share of a core by the kernel's control groups: two tiers then have
twice the processor time of one, and PostgreSQL and the load have enough left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path

from lab.bench.calls import MAIL, TOOLS
from lab.bench.company import Company
from lab.bench.contest import Contender, Run, compete
from lab.bench.load import Rate, measure, post
from lab.bench.report import Report
from lab.bench.served import Served, serving

TIERS = 2
SHARE = 0.3  # of a core, for each tier
PERIOD = 100_000  # microseconds
CLIENTS = 8  # of each tier
WARM_UP = 2.0  # seconds in which new processes compile the policy and prepare their statements
SECONDS = 3.0  # of one measurement, at least: many periods
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def rows(report: Report, url: str, company: Company, *, repeats: int, seconds: float) -> None:
    """Send mails through one tier and through all of them, in turn."""
    with ExitStack() as stack:
        tiers = [stack.enter_context(serving(url, workers=1)) for _ in range(TIERS)]
        for tier in tiers:
            _send([tier], company)(CLIENTS, WARM_UP)
        try:
            for number, tier in enumerate(tiers):
                stack.enter_context(_limited(f"nexus-bench-{number}", tier.pids))
        except OSError as problem:
            report.say(f"web tiers: not measured, the kernel limits no process for us: {problem}")
            return
        all_of_them = Served(tiers[0].port, tuple(pid for tier in tiers for pid in tier.pids))
        one, many = "1 web tier", f"{TIERS} web tiers"
        contenders = [
            Contender(one, _send(tiers[:1], company)),
            Contender(many, _send(tiers, company), (one,)),
        ]
        figures = compete(
            contenders,
            served=all_of_them,
            clients=CLIENTS,
            repeats=repeats,
            seconds=max(seconds, SECONDS),
        )
        report.contest(CLIENTS, figures)


def _send(tiers: Sequence[Served], company: Company) -> Run:
    mails = cycle(
        [post(f"{TOOLS}send_mail", MAIL, company.keys[worker]) for worker in company.workers]
    )
    ports = [tier.port for tier in tiers]

    def run(clients: int, seconds: float) -> Rate:
        return measure(
            ports=ports, request=mails.__next__, clients=clients * len(ports), seconds=seconds
        )

    return run


@contextmanager
def _limited(name: str, pids: Sequence[int]) -> Iterator[None]:
    """Hold processes to a share of a core together. Raises OSError where that cannot be done."""
    quota = round(SHARE * PERIOD)
    unified = (CONTROL_GROUPS / "cgroup.controllers").exists()
    group = (CONTROL_GROUPS if unified else CONTROL_GROUPS / "cpu") / name
    group.mkdir()
    try:
        if unified:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        _put(pids, group)
        yield
    finally:
        _put(pids, group.parent)
        group.rmdir()


def _put(pids: Sequence[int], group: Path) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
