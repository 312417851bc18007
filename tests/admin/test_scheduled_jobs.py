"""The schedule as people see it: every job, its period, what it did, and which do not run."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from core.actions import Action
from core.admin.units import duration
from core.database import database_now
from core.events import Event, record_event
from core.waiting import ringing
from tests.admin.places import list_page
from toolbox import scheduler
from toolbox.models import JobRun

pytestmark = pytest.mark.django_db


def record_runs(seconds_ago=1.0, **others):
    now = database_now()
    for name in scheduler.JOBS:
        JobRun.objects.create(
            name=name,
            last_at=now - timedelta(seconds=others.get(name, seconds_ago)),
            last_seconds=0.0421,
            last_rows=7,
            rows=1234,
            runs=99,
        )


def page(client):
    return client.get(list_page(JobRun)).content.decode()


class TestTheSchedule:
    def test_shows_every_job_with_its_period_and_what_it_did(self, observer):
        record_runs()
        html = page(observer)
        for each in scheduler.JOBS.values():
            assert each.name in html
            assert f">{duration(round(each.every))}<" in html
        assert ">1 hour<" in html
        assert "42 ms" in html
        assert html.count("on time") == len(scheduler.JOBS)
        assert 'id="scheduler"' not in html

    def test_marks_the_late_and_the_failing(self, observer):
        record_runs(escalations=61)
        JobRun.objects.filter(name="leases").update(last_problem="2 rows failed, the first: x")
        html = page(observer)
        assert html.count("on time") == len(scheduler.JOBS) - 2
        assert re.search(r">\s*late\s*<", html)
        assert re.search(r">\s*failing\s*<", html)
        assert "2 rows failed" in html

    def test_names_a_job_that_never_ran(self, observer):
        record_runs()
        JobRun.objects.filter(name="charts").delete()
        assert "Never run: charts (every 5 minutes)" in page(observer)

    def test_says_that_the_scheduler_is_not_running(self, observer):
        assert f"{scheduler.NOT_RUNNING} (no job has run yet)" in page(observer)
        record_runs(90)
        assert f"{scheduler.NOT_RUNNING} (last run 90 s ago)" in page(observer)

    def test_says_so_on_the_first_page_too(self, observer):
        assert (
            f"{scheduler.NOT_RUNNING} (no job has run yet)"
            in observer.get("/admin/").content.decode()
        )
        record_runs(90)
        ringing.forget()
        assert (
            f"{scheduler.NOT_RUNNING} (last run 90 s ago)"
            in observer.get("/admin/").content.decode()
        )
        JobRun.objects.all().delete()
        record_runs()
        ringing.forget()
        assert 'id="scheduler"' not in observer.get("/admin/").content.decode()

    def test_asks_the_database_for_the_time(self, observer, monkeypatch):
        """A machine that is ahead would ring for jobs and seals that are in time."""
        record_runs()
        record_event(Event(action=Action.KEY_ISSUED, actor="system:x", at=database_now()))
        ahead = timezone.now() + timedelta(minutes=20)
        monkeypatch.setattr(timezone, "now", lambda: ahead)
        html = observer.get("/admin/").content.decode()
        assert 'id="scheduler"' not in html
        assert "Ledger not sealed" not in html
