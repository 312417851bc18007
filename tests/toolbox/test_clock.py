"""Agents' calls by the database's clock, whatever the machine that serves them believes."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from core.database import database_now
from ledger.models import Event
from orgchart.models import ApiKey
from tests import loaded as loading
from toolbox.caller import Clock
from toolbox.models import Session

loaded, nexus = loading.loaded, loading.nexus
WORK = {"to": "backend_worker", "title": "Login", "body": "Build it."}


@pytest.mark.parametrize("wrong", [timedelta(hours=1), timedelta(hours=-1)], ids=str)
class TestAWebMachineWithAnotherClock:
    @pytest.fixture(autouse=True)
    def clock(self, nexus, monkeypatch, wrong):
        nexus.key("it_manager")
        machine = timezone.now
        monkeypatch.setattr(timezone, "now", lambda: machine() + wrong)

    def test_decides_and_records_by_the_database(self, nexus, wrong):
        """Spec: clocks 3."""
        now = database_now()
        due = {
            "soon": (now + timedelta(minutes=30)).isoformat(),
            "past": (now - timedelta(minutes=30)).isoformat(),
        }
        made = nexus.call("it_manager", "create_contract", **WORK, deadline=due["soon"])
        refused = nexus.call("it_manager", "create_contract", **WORK, deadline=due["past"])
        assert (made.status, refused.code) == (200, "INVALID_PARAMS")
        times = Event.objects.filter(actor="agent:it_manager").values_list("at", flat=True)
        assert all(abs(at - now) < timedelta(minutes=10) for at in times)

    def test_explains_by_the_database(self, nexus, wrong):
        deadline = (database_now() + timedelta(minutes=30)).isoformat()
        body = {"tool": "create_contract", "params": {**WORK, "deadline": deadline}}
        assert nexus.post("/api/v1/explain", body, "it_manager").body["allowed"]

    def test_records_by_the_database_what_it_refuses_before_there_is_a_caller(self, nexus, wrong):
        """A session of somebody else; a key that was valid once."""
        now = database_now()
        other = nexus.get("/api/v1/me", "it_manager", {"X-Nexus-Session": str(uuid4())})
        ApiKey.objects.filter(agent__handle="it_manager").update(revoked_at=now, revoked_by="tests")
        revoked = nexus.get("/api/v1/me", "it_manager")
        assert (other.status, revoked.status) == (404, 401)
        refused = Event.objects.filter(actor="agent:it_manager", action="tool.denied")
        times = list(refused.values_list("at", flat=True))
        assert len(times) == 2
        assert all(abs(at - now) < timedelta(minutes=10) for at in times)

    def test_opens_the_standing_session_by_the_database(self, nexus, wrong):
        now = database_now()
        assert nexus.get("/api/v1/me", "it_manager").status == 200
        opened = Session.objects.get(agent__handle="it_manager").opened_at
        assert abs(opened - now) < timedelta(minutes=10)


def test_a_clock_goes_on():
    clock = Clock()
    assert clock.said <= clock.now() <= clock.now()
