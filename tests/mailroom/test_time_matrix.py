"""Every job × beats at once × deaths × an hour off: each due row handled once, none early."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from mailroom.outgoing import webhook
from orgchart.compiling import POLICIES
from orgchart.models import Organisation
from tests.company import load_company
from tests.mailroom.clockwork import CASES, DEATHS, Trial, World
from toolbox import scheduler

UNTOUCHED = {("charts", death) for death in DEATHS if death != "before"}
"""This job only writes files."""


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """One committed company for the module: beats have connections of their own."""
    with django_db_blocker.unblock():
        POLICIES.clear()
        company = load_company("nexus")
        row = Organisation.objects.get(id=company.organisation.id)
        row.settings |= {"board_webhook": "https://board.example/hook"}
        row.policy_version += 1
        row.save()
        yield World(company, load_company("soloqueue"))
        call_command("flush", verbosity=0, interactive=False)
        POLICIES.clear()


@pytest.fixture(autouse=True)
def _outside(monkeypatch, world):
    """Receivers outside, who take everything."""

    def send(row, *, now):
        world.arrived.append((str(row.event_id), now))

    monkeypatch.setattr(webhook, "send", send)


class TestEveryScheduledJob:
    def test_has_a_case(self):
        assert set(CASES) == set(scheduler.JOBS)

    @pytest.mark.parametrize("death", DEATHS)
    @pytest.mark.parametrize("at_once", [1, 3])
    @pytest.mark.parametrize("name", CASES)
    def test_handles_each_due_row_once(self, world, name, at_once, death):
        trial = Trial(world, CASES[name], at_once=at_once, death=death)
        trial.run()
        assert not death or trial.died or (name, death) in UNTOUCHED

    @pytest.mark.parametrize("at_once", [1, 3])
    def test_sends_again_what_it_may_have_sent_before_it_died(self, world, at_once):
        trial = Trial(world, CASES["notices"], at_once=at_once, death="before the second write")
        trial.run()
        assert trial.died
        assert len(world.arrived) > len(trial.keys), "sent, and not written down"
