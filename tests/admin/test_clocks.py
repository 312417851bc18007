"""The schedule as people see it: every clock, its period, what it did, and which stand still."""

import re
from datetime import timedelta

import pytest

from tests.admin.places import list_page
from toolbox import scheduler
from toolbox.models import ClockRun

pytestmark = pytest.mark.django_db


def heard(seconds_ago=1.0, **others):
    now = scheduler.database_now()
    for name in scheduler.CLOCKS:
        ClockRun.objects.create(
            name=name,
            last_at=now - timedelta(seconds=others.get(name, seconds_ago)),
            last_seconds=0.0421,
            last_rows=7,
            rows=1234,
            runs=99,
        )


def page(client):
    return client.get(list_page(ClockRun)).content.decode()


class TestTheSchedule:
    def test_shows_every_clock_with_its_period_and_what_it_did(self, observer):
        heard()
        html = page(observer)
        for each in scheduler.CLOCKS.values():
            assert each.name in html
            assert f"{each.every:g} s" in html
        assert "42 ms" in html
        assert html.count("on time") == len(scheduler.CLOCKS)
        assert 'id="beat"' not in html

    def test_marks_the_late_and_the_failing(self, observer):
        heard(escalations=61)
        ClockRun.objects.filter(name="leases").update(last_problem="2 rows failed, the first: x")
        html = page(observer)
        assert html.count("on time") == len(scheduler.CLOCKS) - 2
        assert re.search(r">\s*late\s*<", html)
        assert re.search(r">\s*failing\s*<", html)
        assert "2 rows failed" in html

    def test_names_a_clock_that_was_never_looked_at(self, observer):
        heard()
        ClockRun.objects.filter(name="charts").delete()
        assert "Never looked at: charts (every 300 s)" in page(observer)

    def test_says_that_no_beat_is_heard(self, observer):
        assert "No beat was ever heard" in page(observer)
        heard(90)
        assert "No beat was heard for 90 s" in page(observer)

    def test_says_so_on_the_first_page_too(self, observer):
        assert "No beat was ever heard" in observer.get("/admin/").content.decode()
        heard(90)
        assert "No beat was heard for 90 s" in observer.get("/admin/").content.decode()
        ClockRun.objects.all().delete()
        heard()
        assert 'id="beat"' not in observer.get("/admin/").content.decode()
