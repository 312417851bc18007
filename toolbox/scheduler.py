"""Scheduled jobs: what is due is a row; a job takes due rows, each once, and records its run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from django.db import connection, models, transaction
from django.db.models import Max, QuerySet

from core.database import database_now, limit_lock_waits, planned_for_values
from toolbox.models import JobRun

log = structlog.get_logger(__name__)
DueRow = TypeVar("DueRow", bound=models.Model)
Answer = TypeVar("Answer")
Handler = Callable[[datetime], int]

BATCH = 200
BATCH_DELETED = 20_000
"""Rows that are over and are deleted at once: some 0.1 s."""
TURN = 5.0
"""Seconds of a run in which each organisation has a turn: all have equal parts of them."""
LEAST_WAIT = 0.05
"""Seconds that a row of a sweep may wait for a lock, also where its turn is over."""
MOST_SILENT = 3600.0
"""Seconds between two messages for one job, at most."""
STALLED_AFTER = 60.0
"""Seconds without a run of any job after which the scheduler counts as not running."""
SKEW = timedelta(seconds=STALLED_AFTER)
"""How far the time of the last run may be ahead; farther ahead, the clock was set back."""
NOT_RUNNING = "The scheduler is not running; timeouts are not processed"

_failures: ContextVar[list[str] | None] = ContextVar("failures", default=None)
"""The failures of single rows in the job that is running."""


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A periodic job: its name, its period in seconds, and the function that handles due rows.

    Some wait for what is not ours: a receiver, a repository, a container engine.
    """

    name: str
    every: float
    handle: Handler
    waits_for_others: bool = False

    @property
    def sent_every(self) -> float:
        """The seconds between two messages; a lost one delays a daily job by an hour, not a day."""
        return min(self.every, MOST_SILENT)


JOBS: dict[str, ScheduledJob] = {}


def scheduled_job(
    name: str, *, every: float, waits_for_others: bool = False
) -> Callable[[Handler], Handler]:
    """Declare the handler of due rows: it takes the time and returns how many rows it handled."""

    def declare(handle: Handler) -> Handler:
        if name in JOBS:
            raise ValueError(f"two scheduled jobs are called {name}")
        JOBS[name] = ScheduledJob(name, every, handle, waits_for_others)
        return handle

    return declare


def has_run_recently(name: str, *, now: datetime) -> bool:
    """Whether a job ran successfully so lately that it need not for this message.

    Each run follows the last after its period, give or take half the time between two messages.
    Messages pile up while no worker takes them, and several schedulers send several. A last run in
    the future does not count: the database's time was set back.
    """
    job = JOBS[name]
    since = now - timedelta(seconds=job.every - job.sent_every / 2)
    return JobRun.objects.filter(
        name=name, last_at__gt=since, last_at__lte=now, last_problem=""
    ).exists()


def seconds_since_last_run(*, now: datetime) -> float | None:
    """Seconds since any job ran, 0 at least; None if no job ever ran.

    A run in the future does not count, as for `has_run_recently`: it would hide that none follows.
    """
    runs = JobRun.objects.filter(last_at__lte=now + SKEW)
    last = runs.aggregate(last=Max("last_at"))["last"]
    return None if last is None else max(0.0, (now - last).total_seconds())


def scheduler_problem(*, now: datetime) -> str:
    """Why timeouts are not processed, for people; empty while the scheduler runs."""
    seconds = seconds_since_last_run(now=now)
    if seconds is None:
        return f"{NOT_RUNNING} (no job has run yet)"
    return f"{NOT_RUNNING} (last run {int(seconds)} s ago)" if seconds >= STALLED_AFTER else ""


def is_late(job: ScheduledJob, last_at: datetime | None, *, now: datetime) -> bool:
    """Whether a job has not run for three of its periods, and for a minute at least."""
    if last_at is None or last_at > now + SKEW:
        return True
    return now - last_at > timedelta(seconds=max(3 * job.every, STALLED_AFTER))


def late_jobs(*, now: datetime) -> Sequence[str]:
    """The names of the jobs that are late."""
    last_runs = dict(JobRun.objects.values_list("name", "last_at"))
    return [name for name, job in JOBS.items() if is_late(job, last_runs.get(name), now=now)]


def failing_jobs() -> Sequence[str]:
    """The names of the jobs whose last run failed, or did not handle each row."""
    failing = set(JobRun.objects.exclude(last_problem="").values_list("name", flat=True))
    return [name for name in JOBS if name in failing]


def run_job(name: str, *, now: datetime | None = None) -> int:
    """Handle everything that is due for a job, and record the run.

    Concurrent runs are harmless. Raises KeyError for an unknown job. A handler's own failure is
    recorded and raised; failures of single rows are recorded.
    """
    job = JOBS[name]
    now = now or database_now()
    started, rows, problem, failed = time.perf_counter(), 0, "", list[str]()
    token = _failures.set(failed)
    try:
        rows = job.handle(now)
        if failed:
            problem = f"{len(failed)} rows failed, the first: {failed[0]}"
    except Exception as failure:
        problem = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        _failures.reset(token)
        _record_run(name, now, rows, time.perf_counter() - started, problem[:500])
    return rows


RECORD_RUN = """
INSERT INTO toolbox_jobrun AS r
    (name, last_at, last_seconds, last_rows, last_problem, rows, runs)
VALUES (%(name)s, %(at)s, %(seconds)s, %(rows)s, %(problem)s, %(rows)s, 1)
ON CONFLICT (name) DO UPDATE SET
    last_at = EXCLUDED.last_at, last_seconds = EXCLUDED.last_seconds,
    last_rows = EXCLUDED.last_rows, last_problem = EXCLUDED.last_problem,
    rows = r.rows + EXCLUDED.rows, runs = r.runs + 1
"""


def _record_run(name: str, now: datetime, rows: int, seconds: float, problem: str) -> None:
    values: dict[str, str | int | float | datetime] = {
        "name": name,
        "at": now,
        "seconds": seconds,
        "rows": rows,
        "problem": problem,
    }
    with connection.cursor() as cursor:
        cursor.execute(RECORD_RUN, values)


def sweep(
    due: QuerySet[DueRow],
    act: Callable[[DueRow], None],
    *,
    batch: int = BATCH,
    by: str = "pk",
    of: str | None = None,
) -> int:
    """Act on every due row, once, in the transaction that takes it; returns how many.

    `act` must leave the row not due. Rows that another sweep holds are skipped; one that fails is
    rolled back alone, logged, and tried at the next run, with the others of the same `by`, such as
    the agent that can make rows fail. `of` leads from a row to its organisation: each has a turn
    then, of one row at least, and what is left at its end is for the next run (Spec: clocks 18).
    One row may be a whole thread of escalations, and a batch of them minutes: so a turn ends
    between two rows, and no lock is waited for after its end (Spec: clocks 14). The more
    organisations have rows, the shorter are their turns: the run holds a thread of the worker, and
    what falls due meanwhile waits for its end.

    PostgreSQL plans for what is due now: a plan kept from a time when much was due would read what
    has ended.
    """
    if of is None:
        return _sweep(due, act, batch, by, ends=math.inf)
    with planned_for_values():
        organisations = list(due.order_by().values_list(of, flat=True).distinct())
    turn = TURN / max(1, len(organisations))
    return sum(
        _sweep(due.filter(**{of: one}), act, batch, by, ends=time.monotonic() + turn)
        for one in organisations
    )


def _sweep(
    due: QuerySet[DueRow], act: Callable[[DueRow], None], batch: int, by: str, *, ends: float
) -> int:
    handled, failed = 0, set[object]()
    while True:
        left = due.exclude(**{f"{by}__in": failed})
        with transaction.atomic():
            _check_at_each_row()
            _wait_for_locks_until(ends)
            with planned_for_values():
                taken = list(left.select_for_update(skip_locked=True, of=("self",))[:batch])
            for row in taken:
                if (whose := getattr(row, by)) in failed:
                    continue
                failed.add(whose)
                with _kept_failure(row):
                    with transaction.atomic():
                        act(row)
                    failed.discard(whose)
                    handled += 1
                    if time.monotonic() > ends:  # one that fails slowly keeps no turn for itself
                        return handled
                if whose in failed:
                    _wait_for_locks_until(ends)
        if len(taken) < batch or time.monotonic() > ends:
            return handled


def _check_at_each_row() -> None:
    """Let a foreign key wait for its lock, and fail, at its row and not at the commit of all."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _wait_for_locks_until(ends: float) -> None:
    """Wait for no lock beyond the end of a turn: an operator's statement may hold it long."""
    limit_lock_waits(max(LEAST_WAIT, min(TURN, ends - time.monotonic())))


def delete_over(rows: QuerySet[DueRow], *, batch: int = BATCH_DELETED) -> int:
    """Delete rows that are over; returns how many. What is left after TURN is for the next run.

    After a day without a worker there are millions, and an open transaction keeps all events from
    their seals: each batch has its own (Spec: clocks 18).
    """
    ends, deleted = time.monotonic() + TURN, 0
    while True:
        with planned_for_values():
            count, _ = rows.model._base_manager.filter(  # noqa: SLF001  Django's public name
                pk__in=rows.order_by().values("pk")[:batch]
            ).delete()
        deleted += count
        if count < batch or time.monotonic() > ends:
            return deleted


def act_on_each(rows: Iterable[DueRow], act: Callable[[DueRow], int]) -> int:
    """Act on every row, outside any transaction; returns the sum of what `act` returns.

    For what lasts too long for `sweep`. One that fails is logged and keeps no other from it.
    """
    return sum(answers_of_each(rows, act).values())


def answers_of_each(
    rows: Iterable[DueRow], ask: Callable[[DueRow], Answer]
) -> dict[DueRow, Answer]:
    """What `ask` returns for every row; one that fails is logged and left out."""
    with planned_for_values():
        found = list(rows)
    answers = dict[DueRow, Answer]()
    for row in found:
        with _kept_failure(row):
            answers[row] = ask(row)
    return answers


def act_in_time(
    claim: Callable[[datetime], Sequence[DueRow]],
    act: Callable[[DueRow, datetime], int],
    *,
    now: datetime,
    seconds: float,
) -> int:
    """Claim rows and act on them, until none is due or the time is over; the sum of the answers.

    For what waits for others, outside any transaction. Claims and acts get the time of their
    moment. A claimed row must not be due again at once; what is left is for the next run.
    """
    begun, done = time.monotonic(), 0

    def by_now() -> datetime:
        return now + timedelta(seconds=time.monotonic() - begun)

    while claimed := _claimed(claim, by_now()):
        done += act_on_each(claimed, lambda row: act(row, by_now()))
        if time.monotonic() - begun > seconds:
            break
    return done


def _claimed(claim: Callable[[datetime], Sequence[DueRow]], now: datetime) -> Sequence[DueRow]:
    with planned_for_values():
        return claim(now)


@contextmanager
def _kept_failure(row: models.Model) -> Iterator[None]:
    """Log what fails for this row, and keep it for the record of the job's run."""
    try:
        yield
    except Exception as failure:
        if connection.needs_rollback or not connection.is_usable():
            raise  # not this row's fault: the transaction is lost, and all in it
        name = f"{type(row).__name__} {row.pk}"
        log.exception("due_row_failed", row=name)
        failures = _failures.get()
        if failures is not None:
            failures.append(f"{name}: {type(failure).__name__}: {failure}")
