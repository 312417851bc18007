"""Contests: the same work done in several ways, measured in turn, so that only ratios matter."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db import connection

from lab.bench.load import Rate, Request, measure
from lab.bench.served import TICKS, Served

Run = Callable[[int, float], Rate]
"""Does the work with so many clients for so many seconds."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing the work; `against` names those that its rate is divided by."""

    name: str
    run: Run
    against: Sequence[str] = ()


@dataclass(slots=True)
class Figure:
    """What the repeats of one contender measured, one value for each.

    `web_ms` and `db_ms` are processor time of a call; `ratios` pairs each repeat with the same
    repeat of another contender, a moment before or after.
    """

    rates: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    web_ms: list[float] = field(default_factory=list)
    db_ms: list[float] = field(default_factory=list)
    ratios: dict[str, list[float]] = field(default_factory=dict)
    cpu_ratios: dict[str, list[float]] = field(default_factory=dict)
    unexpected: int = 0

    @property
    def cpu_ms(self) -> list[float]:
        """Processor time of a call in all processes."""
        return [web + db for web, db in zip(self.web_ms, self.db_ms, strict=True)]


def calls(port: int, request: Request, expected: int = 200) -> Run:
    """The way of a client over HTTP."""
    return lambda clients, seconds: measure(
        ports=[port], request=request, clients=clients, seconds=seconds, expected=expected
    )


def warm_up(contenders: Sequence[Contender], *, clients: int, seconds: float) -> None:
    """Let each contender work before any is measured.

    Every process, thread and connection has then done it: code is loaded, and PostgreSQL keeps a
    plan for each statement.
    """
    for each in contenders:
        each.run(clients, seconds)


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of one measurement: what was answered, and the processor time that it took."""

    rate: Rate
    web_seconds: float
    database_seconds: float


def compete(
    contenders: Sequence[Contender],
    *,
    served: Served,
    clients: int,
    repeats: int,
    seconds: float,
    slices: int = 1,
) -> Mapping[str, Figure]:
    """Let the contenders work in turn, `repeats` times, the order reversed each time.

    Each repeat is so many rounds of them, with a slice of its seconds for each: what disturbs the
    machine for a second or two disturbs them all.
    """
    figures = {each.name: Figure() for each in contenders}
    for repeat in range(repeats):
        found: dict[str, list[Slice]] = {each.name: [] for each in contenders}
        for turn in range(slices):
            for each in contenders if (repeat + turn) % 2 == 0 else reversed(contenders):
                found[each.name].append(_slice(each, served, clients, seconds / slices))
        for name, measured in found.items():
            _add(figures[name], measured)
    for each in contenders:
        figure = figures[each.name]
        for name in each.against:
            other = figures[name]
            figure.ratios[name] = _divided(figure.rates, other.rates)
            figure.cpu_ratios[name] = _divided(figure.cpu_ms, other.cpu_ms)
    return figures


def _slice(each: Contender, served: Served, clients: int, seconds: float) -> Slice:
    web, database = served.cpu_seconds(), database_seconds()
    rate = each.run(clients, seconds)
    return Slice(rate, served.cpu_seconds() - web, _spent_since(database))


def _add(figure: Figure, slices: Sequence[Slice]) -> None:
    """Add the slices of one repeat."""
    rate = Rate.of_slices([one.rate for one in slices])
    answered = max(1, rate.calls)
    figure.rates.append(rate.per_second)
    figure.p50.append(rate.p50)
    figure.p99.append(rate.p99)
    figure.web_ms.append(sum(one.web_seconds for one in slices) / answered * 1000)
    figure.db_ms.append(sum(one.database_seconds for one in slices) / answered * 1000)
    figure.unexpected += rate.unexpected


def _divided(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / other if other else 0.0 for one, other in zip(ones, others, strict=True)]


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values) if values else 0.0


def spread(values: Sequence[float]) -> float:
    """Half the distance between the least and the greatest, as a share of the median."""
    return (max(values) - min(values)) / 2 / middle(values) if values and middle(values) else 0.0


def database_seconds() -> dict[int, float]:
    """Processor time of the database's processes by their ids, where they run on this machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        pids = [pid for (pid,) in cursor.fetchall()]
    times = {}
    for pid in pids:
        try:
            name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        except OSError:
            continue
        if "postgres" in name:
            fields = rest.split()
            times[pid] = (int(fields[11]) + int(fields[12])) / TICKS
    return times


def _spent_since(before: Mapping[int, float]) -> float:
    return sum(now - before.get(pid, 0.0) for pid, now in database_seconds().items())
