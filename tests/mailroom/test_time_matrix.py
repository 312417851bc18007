"""Every job × beats at once × deaths × an hour off: each due row handled once, none early."""

import time

import pytest

from tests.mailroom.clockwork import CASES, DEATHS, Trial, receivers_outside, world
from tests.patience import PATIENCE
from toolbox import scheduler

__all__ = ["receivers_outside", "world"]

UNTOUCHED = {("charts", death) for death in DEATHS if death != "before"}
"""This job only writes files."""


ELSEWHERE = {"deployments", "git garbage", "repositories", "sessions of people", "web use"}
"""Jobs that ask an engine or another repository, or only delete what is over."""


def died_in_another(world, name, at_once, death):
    """Whether a beat dies in another trial: where each took one row, none wrote enough to die."""
    ends, died = time.monotonic() + PATIENCE, 0
    while not died and time.monotonic() < ends:
        trial = Trial(world, CASES[name], at_once=at_once, death=death)
        trial.run()
        died = trial.died
    return died


class TestEveryScheduledJob:
    def test_has_a_case(self):
        assert set(CASES) | ELSEWHERE == set(scheduler.JOBS)

    @pytest.mark.parametrize("death", DEATHS)
    @pytest.mark.parametrize("at_once", [1, 3])
    @pytest.mark.parametrize("name", CASES)
    def test_handles_each_due_row_once(self, world, name, at_once, death):
        trial = Trial(world, CASES[name], at_once=at_once, death=death)
        trial.run()
        if death and (name, death) not in UNTOUCHED:
            assert trial.died or died_in_another(world, name, at_once, death)

    @pytest.mark.parametrize("at_once", [1, 3])
    def test_sends_again_what_it_may_have_sent_before_it_died(self, world, at_once):
        trial = Trial(world, CASES["notices"], at_once=at_once, death="before the second write")
        trial.run()
        assert trial.died
        assert len(world.arrived) > len(trial.keys), "sent, and not written down"
