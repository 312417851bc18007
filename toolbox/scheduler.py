"""Clocks: whatever is due is a row; a clock takes due rows, each once, and says what it did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from django.db import connection, models, transaction
from django.db.models import Max, QuerySet

from toolbox.models import ClockRun

log = structlog.get_logger(__name__)
Row = TypeVar("Row", bound=models.Model)
Handler = Callable[[datetime], int]

BATCH = 200
SILENT = 60.0
"""Seconds after which a beat that was not heard is worth a word."""

_failures: ContextVar[list[str] | None] = ContextVar("failures", default=None)
"""What went wrong with single rows of the tick that is running."""


@dataclass(frozen=True, slots=True)
class Clock:
    """One kind of due thing: its name, how often to look (seconds), and who handles what is due."""

    name: str
    every: float
    handle: Handler


CLOCKS: dict[str, Clock] = {}


def clock(name: str, *, every: float) -> Callable[[Handler], Handler]:
    """Declare the handler of what is due: it takes the time and returns the rows it handled."""

    def declare(handle: Handler) -> Handler:
        if name in CLOCKS:
            raise ValueError(f"two clocks are called {name}")
        CLOCKS[name] = Clock(name, every, handle)
        return handle

    return declare


def database_now() -> datetime:
    """The one time that all sweeps go by, whatever the clocks of their machines say."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]


def just_looked_at(name: str, *, now: datetime) -> bool:
    """Whether a look now would be one too many: the last is not even half a period old.

    Wake-ups pile up while no worker takes them, and several beats send several. A last look in the
    future says nothing: the database's own time was set back.
    """
    since = now - timedelta(seconds=CLOCKS[name].every / 2)
    fine = ClockRun.objects.filter(name=name, last_at__gt=since, last_at__lte=now, last_problem="")
    return fine.exists()


def silence(*, now: datetime) -> float | None:
    """Seconds since any clock was looked at; None: none ever was."""
    last = ClockRun.objects.aggregate(last=Max("last_at"))["last"]
    return None if last is None else float((now - last).total_seconds())


def is_late(clock: Clock, last_at: datetime | None, *, now: datetime) -> bool:
    """Whether nobody looked at a clock for three of its periods, or a minute where that is more."""
    if last_at is None:
        return True
    return now - last_at > timedelta(seconds=max(3 * clock.every, SILENT))


def late_clocks(*, now: datetime) -> Sequence[str]:
    """The names of the clocks that nobody looked at in time."""
    seen = dict(ClockRun.objects.values_list("name", "last_at"))
    return [name for name, each in CLOCKS.items() if is_late(each, seen.get(name), now=now)]


def tick(name: str, *, now: datetime | None = None) -> int:
    """Handle everything that is due on a clock, and write down that it was looked at.

    Several at once are harmless. Raises KeyError for an unknown clock; a handler's own failure is
    written down and raised, those of single rows are written down.
    """
    clock = CLOCKS[name]
    now = now or database_now()
    begun, rows, problem, failed = time.perf_counter(), 0, "", list[str]()
    token = _failures.set(failed)
    try:
        rows = clock.handle(now)
        if failed:
            problem = f"{len(failed)} rows failed, the first: {failed[0]}"
    except Exception as failure:
        problem = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        _failures.reset(token)
        _note(name, now, rows, time.perf_counter() - begun, problem[:500])
    return rows


NOTE = """
INSERT INTO toolbox_clockrun AS r
    (name, last_at, last_seconds, last_rows, last_problem, rows, runs)
VALUES (%(name)s, %(at)s, %(seconds)s, %(rows)s, %(problem)s, %(rows)s, 1)
ON CONFLICT (name) DO UPDATE SET
    last_at = EXCLUDED.last_at, last_seconds = EXCLUDED.last_seconds,
    last_rows = EXCLUDED.last_rows, last_problem = EXCLUDED.last_problem,
    rows = r.rows + EXCLUDED.rows, runs = r.runs + 1
"""


def _note(name: str, now: datetime, rows: int, seconds: float, problem: str) -> None:
    values: dict[str, str | int | float | datetime] = {
        "name": name,
        "at": now,
        "seconds": seconds,
        "rows": rows,
        "problem": problem,
    }
    with connection.cursor() as cursor:
        cursor.execute(NOTE, values)


def sweep(due: QuerySet[Row], act: Callable[[Row], None], *, batch: int = BATCH) -> int:
    """Act on every due row, once, in the transaction that takes it.

    `act` must leave the row not due. Rows that another sweep holds are skipped; one that fails is
    rolled back alone, logged, and tried at the next tick. Returns how many were handled.
    """
    handled, failed = 0, set[object]()
    while True:
        with transaction.atomic():
            taken = list(
                due.exclude(pk__in=failed).select_for_update(skip_locked=True, of=("self",))[:batch]
            )
            for row in taken:
                try:
                    with transaction.atomic():
                        act(row)
                    handled += 1
                except Exception as failure:
                    if connection.needs_rollback or not connection.is_usable():
                        raise  # not this row's fault: the transaction is lost, and all in it
                    log.exception("due_row_failed", row=f"{type(row).__name__} {row.pk}")
                    failed.add(row.pk)
                    _keep_failure(row, failure)
        if len(taken) < batch:
            return handled


def _keep_failure(row: models.Model, failure: Exception) -> None:
    failures = _failures.get()
    if failures is not None:
        failures.append(f"{type(row).__name__} {row.pk}: {type(failure).__name__}: {failure}")
