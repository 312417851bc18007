"""The played company: everything that falls due is accounted for, and a wrong account is seen."""

import io
import random
import re
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from core.actors import System
from lab.management.commands.simulate import Command
from lab.simulation.company import callers, found_company
from lab.simulation.run import DUE, Account, Simulation
from ledger.services import record
from tests.loaded import rolled_back
from toolbox import scheduler

pytestmark = pytest.mark.django_db


def begin():
    start = timezone.now().replace(second=0, microsecond=0)
    policy = found_company(agents=12, now=start)
    dice = random.Random(3)  # the play is the same every time
    return Simulation(policy=policy, people=callers(policy), start=start, now=start, dice=dice)


@pytest.fixture
def play():
    return begin()


def run(play, **time):
    for _ in play.run(until=play.start + timedelta(**time), calls_per_step=2):
        pass


@pytest.fixture(scope="module")
def four_hours(django_db_setup, django_db_blocker):
    """What was played in four hours, and what was done twice in them; the rows are gone."""
    with django_db_blocker.unblock(), contextmanager(rolled_back)():
        play = begin()
        run(play, hours=4)
        return play, Command().twice()


class TestAPlay:
    def test_accounts_for_every_row_that_fell_due(self, four_hours):
        play, twice = four_hours
        fired = {name: len(account.fired) for name, account in play.accounts.items()}
        for name in ("escalations", "deadlines", "approvals", "leases"):
            assert fired[name] > 0, fired
        for name, account in play.accounts.items():
            assert account.left == 0
            assert min(account.late, default=0) >= 0
            assert max(account.late, default=0) <= max(scheduler.JOBS[name].every, 60)
        assert twice == []

    def test_calls_what_the_company_can_do(self, four_hours):
        play, _ = four_hours
        done = {name for name in play.calls if name.endswith(" 200")}
        assert done >= {
            "send_mail 200",
            "escalate 200",
            "create_contract 200",
            "approve_deployment 200",
            "delegate_to 200",
            "task_create 200",
        }
        assert not [name for name in play.calls if name.endswith(("400", "500"))]

    def test_lets_a_clock_look_as_often_as_beat_would(self, four_hours):
        play, _ = four_hours
        assert play.accounts["escalations"].looks == 4 * 60
        assert play.accounts["charts"].looks == 4 * 12

    def test_sees_what_stays_undone(self, play, monkeypatch):
        real = scheduler.JOBS["leases"]
        monkeypatch.setitem(
            scheduler.JOBS, "leases", scheduler.ScheduledJob("leases", real.every, lambda _: 0)
        )
        run(play, hours=1)
        assert play.accounts["leases"].left > 0

    def test_sees_what_was_done_twice(self, play):
        system = System(name="trial", organisation_id=play.policy.organisation_id)
        with transaction.atomic():
            for _ in range(2):
                record("contract.overdue", by=system, at=play.now, subject="contract:CON-1")
        assert Command().twice() == ["a deadline told twice: contract:CON-1"]

    def test_knows_what_is_due_on_every_clock_that_goes_by_rows(self):
        without_rows = {
            *("notices", "ledger seals", "files", "charts"),
            *("deployments", "git garbage", "repositories", "sessions of people", "web use"),
        }
        assert set(DUE) == set(scheduler.JOBS) - without_rows


class TestAReport:
    def test_names_the_clocks_that_are_not_played(self, play):
        run(play, minutes=5)
        said = io.StringIO()
        Command(stdout=said).report(play, {"hours": 5 / 60, "agents": 12}, 1.0)
        last = said.getvalue().splitlines()[-1]
        assert last == "not played: ledger seals, notices"
        assert not {"notices", "ledger seals"} & set(play.accounts)


class TestAnAccount:
    @pytest.mark.parametrize("late", [[1.0, 46.0], [0.0, 1.0, 46.0], [5.0], [3.0] * 9])
    def test_says_nothing_later_than_the_latest(self, late):
        start = timezone.now()
        figures, _ = Account(looks=9, fired=[start] * len(late), late=late).lines("frames", start)
        p50, p99, most = (float(n) for n in re.findall(r"(\d+) s", figures))
        assert p50 <= p99 <= most == max(late)

    def test_says_how_often_when_and_how_late(self):
        start = timezone.now().replace(hour=9, minute=0, second=0, microsecond=0)
        fired = [start + timedelta(minutes=m) for m in (10, 20, 130)]
        account = Account(looks=180, fired=fired, late=[1.0, 2.0, 50.0], left=1)
        figures, hours = account.lines("deadlines", start)
        assert "looked   180 times, fired      3" in figures
        assert "most   50 s, left over 1" in figures
        assert "09:10" in hours
        assert "11:10" in hours
        assert "|█ ▄|" in hours

    def test_says_that_nothing_was_due(self):
        (line,) = Account(looks=7).lines("frames", timezone.now())
        assert "looked     7 times, nothing was due" in line
