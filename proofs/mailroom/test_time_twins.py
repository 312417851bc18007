"""Twins of the jobs' mechanisms, each broken in one place: the same trial must catch every one.

A trial that a broken twin passes would prove nothing of the real mechanism.
"""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from contracts import deadlines
from contracts.models import Deadline
from core.database import database_now
from documents import files
from ledger.services import insert_event
from mailroom.escalations import timeouts as unanswered
from mailroom.models import Escalation, OutgoingNotice
from mailroom.outgoing import outbox, webhook
from tests.mailroom.clockwork import CASES, Trial, beat, receivers_outside, world
from toolbox import scheduler
from toolbox.models import IdempotencyRecord
from toolbox.scheduler import sweep

__all__ = ["receivers_outside", "world"]

Sweep = Callable[..., int]


LOST, TOO_OFTEN, TALE = r"lost Counter\(\{", r"too often Counter\(\{", "rows of"


def caught(world, name, fault, *, at_once=1, death=""):
    """The account that the trial makes of whatever is patched in names this fault."""
    with pytest.raises(AssertionError, match=fault):
        Trial(world, CASES[name], at_once=at_once, death=death, patience=0.3).run()


def unlocked(gate: threading.Barrier) -> Sweep:
    """Takes rows as they are seen, which another beat sees too."""

    def twin(due, act, **_batch):
        rows = list(due)
        if rows:
            try:
                gate.wait(0.5)
            except threading.BrokenBarrierError:
                gate.reset()
        for row in rows:
            with transaction.atomic():
                act(row)
        return len(rows)

    return twin


def save_without_version(row, _before, event):
    """Saves the step whatever happened to the row meanwhile."""
    Escalation.objects.filter(id=row.id).update(state=row.state, unanswered_at=row.unanswered_at)
    insert_event(event)


def marked_first(mark: Callable[[Any], None]) -> Sweep:
    """Writes down that a row is done, commits, and then does it."""

    def twin(due, act, **_batch):
        rows = list(due)
        for row in rows:
            mark(row)
            with transaction.atomic():
                act(row)
        return len(rows)

    return twin


def marked_last(unmark: Callable[[Any], None], mark: Callable[[Any], None]) -> Sweep:
    """Does a row's work, commits, and then writes down that it is done."""

    def twin(due, act, **_batch):
        rows = list(due)
        for row in rows:
            with transaction.atomic():
                act(row)
                unmark(row)
            mark(row)
        return len(rows)

    return twin


class TestASweep:
    @pytest.mark.parametrize(
        ("room", "name"),
        [(unanswered, "escalations"), (deadlines, "deadlines")],
    )
    def test_that_takes_no_lock_does_it_twice(self, world, monkeypatch, room: ModuleType, name):
        monkeypatch.setattr(room, "sweep", unlocked(threading.Barrier(3)))
        monkeypatch.setattr(unanswered, "save_step", save_without_version)
        caught(world, name, TOO_OFTEN, at_once=3)

    def test_that_writes_down_first_loses_what_it_died_over(self, world, monkeypatch):
        def mark(row):
            Deadline.objects.filter(id=row.id).update(done_at=timezone.now())

        monkeypatch.setattr(deadlines, "sweep", marked_first(mark))
        caught(world, "deadlines", LOST, death="at commit")

    def test_that_writes_down_last_does_again_what_it_died_over(self, world, monkeypatch):
        def done_at(value, row):
            Deadline.objects.filter(id=row.id).update(done_at=value)

        twin = marked_last(partial(done_at, None), partial(done_at, timezone.now()))
        monkeypatch.setattr(deadlines, "sweep", twin)
        caught(world, "deadlines", TOO_OFTEN, death="after a commit")

    def test_that_swallows_a_lost_connection_tells_of_rows_it_never_handled(
        self, world, monkeypatch
    ):
        monkeypatch.setattr(files, "sweep", swallowing)
        caught(world, "files", TALE, death="dropped")

    def test_that_looks_by_no_time_is_early(self, world, monkeypatch):
        def handle(now):
            return unanswered.sweep_due(now=now + timedelta(minutes=31))

        real = scheduler.JOBS["escalations"]
        monkeypatch.setitem(
            scheduler.JOBS, "escalations", scheduler.ScheduledJob(real.name, real.every, handle)
        )
        caught(world, "escalations", TOO_OFTEN)

    def test_that_forgets_what_it_has_not_looked_at_for_an_hour_loses_it(self, world, monkeypatch):
        def handle(now):
            recent = Deadline.objects.filter(due_at__gt=now - timedelta(minutes=45))
            return sweep(
                recent.filter(done_at=None, due_at__lte=now),
                lambda row: deadlines._notify(row, now),
            )

        real = scheduler.JOBS["deadlines"]
        monkeypatch.setitem(
            scheduler.JOBS, "deadlines", scheduler.ScheduledJob(real.name, real.every, handle)
        )
        caught(world, "deadlines", LOST, death="before")


def swallowing(due, act, *, batch=200, by="pk"):
    """Takes every failure for the row's own."""
    handled, failed = 0, set()
    while True:
        with transaction.atomic():
            taken = list(
                due.exclude(**{f"{by}__in": failed}).select_for_update(
                    skip_locked=True, of=("self",)
                )[:batch]
            )
            for row in taken:
                try:
                    with transaction.atomic():
                        act(row)
                    handled += 1
                except Exception:  # noqa: BLE001  the fault that this twin has
                    failed.add(getattr(row, by))
        if len(taken) < batch:
            return handled


class TestAnEffect:
    def test_outside_the_rows_transaction_outlives_a_death(self, world, monkeypatch):
        """The outbox row, written by a connection of its own."""
        real = outbox.notify_board

        def apart(**told):
            failures = []

            def write():
                try:
                    with transaction.atomic():
                        real(**told)
                except Exception as failure:  # noqa: BLE001  raised below
                    failures.append(failure)
                finally:
                    connection.close()

            thread = threading.Thread(target=write)
            thread.start()
            thread.join(10)
            assert not failures

        monkeypatch.setattr(outbox, "notify_board", apart)
        caught(world, "escalations", TOO_OFTEN, death="at commit")

    def test_that_leaves_the_row_due_is_done_at_every_look(self, world, monkeypatch):
        def forgetful(due, act, **_batch):
            rows = list(due)
            for row in rows:
                with transaction.atomic():
                    act(row)
                    Escalation.objects.filter(id=row.id).update(
                        state="open", unanswered_at=None, version=1
                    )
            return len(rows)

        monkeypatch.setattr(unanswered, "sweep", forgetful)
        caught(world, "escalations", TOO_OFTEN)


class TestANotice:
    def test_with_a_new_id_at_each_attempt_is_a_stranger(self, world, monkeypatch):
        def send(row, _policy):
            world.arrived.append(str(uuid.uuid4()))

        monkeypatch.setattr(webhook, "send", send)
        caught(world, "notices", LOST)

    def test_claimed_for_ever_is_lost_with_its_sender(self, world, monkeypatch):
        monkeypatch.setattr(outbox, "CLAIMED_FOR", timedelta(days=365))
        caught(world, "notices", LOST, death="after a commit")

    def test_settled_by_whoever_comes_is_written_down_twice(self, world, monkeypatch):
        """Without the version in its condition a sender that was overtaken settles too."""
        real = outbox._settle

        def twice(row, attempt, now):
            real(row, attempt, now)
            again = OutgoingNotice.objects.filter(id=row.id)
            again.update(state="pending", version=row.version)
            return real(again.get(), attempt, now)

        monkeypatch.setattr(outbox, "_settle", twice)
        caught(world, "notices", TOO_OFTEN)


class TestAKeptAnswer:
    def test_forgotten_within_the_hour_before_is_early(self, world, monkeypatch):
        def handle(now):
            return IdempotencyRecord.objects.filter(due_at__lte=now + timedelta(hours=1)).delete()[
                0
            ]

        real = scheduler.JOBS["idempotency"]
        monkeypatch.setitem(
            scheduler.JOBS, "idempotency", scheduler.ScheduledJob(real.name, real.every, handle)
        )
        caught(world, "idempotency", TOO_OFTEN)


class TestTheTime:
    def test_is_the_databases_whatever_the_machine_says(self, world, monkeypatch):
        """A machine an hour ahead handles nothing early."""
        case = CASES["escalations"]
        soon = case.make(world, database_now() + timedelta(minutes=30))
        ahead = timezone.now() + timedelta(hours=1)
        monkeypatch.setattr(timezone, "now", lambda: ahead)
        beat("escalations", None)
        assert case.left([soon]) == {soon}

    def test_taken_from_the_machine_is_early(self, world, monkeypatch):
        case = CASES["escalations"]
        soon = case.make(world, database_now() + timedelta(minutes=30))
        monkeypatch.setattr(scheduler, "database_now", lambda: timezone.now() + timedelta(hours=1))
        beat("escalations", None)
        with pytest.raises(AssertionError):
            assert case.left([soon]) == {soon}
