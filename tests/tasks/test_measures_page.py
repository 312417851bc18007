"""The measures in the admin: figures, charts and tables of one organisation and one period."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.permissions import PeopleGroup
from tasks.insight import measures_page as admin_measures
from tasks.insight.measures_page import PERIODS, USUAL
from tasks.models import Task
from tests.tasks.people import sign_in
from tests.tasks.world import dev_team

EVIL = "<script>alert(1)</script>"
MOST_QUERIES = 15
"""Session, person, groups, rights, organisations; two for the counts, three for durations."""


def page(client, **query):
    return client.get(reverse("admin:tasks_task_measures"), query)


def html_of(client, **query):
    answer = page(client, **query)
    assert answer.status_code == 200
    return answer.content.decode()


def card(html, name):
    return re.search(rf'id="{name}">(.*?)</section>', html, re.DOTALL).group(1)


@pytest.fixture
def worked(http):
    """Three tasks of the architect's, one across roles, a stale update and a wrong transition."""
    for place in range(3):
        role = "architect" if place else "backend-leader"
        one = http.call(
            "team-lead", "task_create", subject="x", requiredRole=role, taskType="api_design"
        ).result["id"]
        lead = {"forceAssign": True} if not place else {}
        who = "team-lead" if not place else "architect"
        http.call(who, "task_update", taskId=one, owner="architect", **lead)
        http.call("architect", "task_update", taskId=one, status="in_progress")
    http.call("architect", "task_update", taskId=one, status="completed")
    http.call("architect", "task_update", taskId=one, description="x", expectedVersion=1)
    http.call("architect", "task_update", taskId=one, status="pending")


class TestThePage:
    def test_shows_the_four_measures_with_their_definitions_and_targets(self, worked):
        html = html_of(sign_in(PeopleGroup.BOARD))
        assert "<b>66.7 %</b>" in card(html, "role_match")
        assert "2 of 3 · target &gt; 95 %" in card(html, "role_match")
        assert "target missed" in card(html, "role_match")
        assert "<b>33.3 %</b>" in card(html, "cross_role_claims")
        assert "1 of 8 · target &lt; 5 %" in card(html, "conflict_rate")
        assert "<b>1</b>" in card(html, "invalid_transitions")
        assert "updates whose expected version was stale, of all updates" in html.lower()

    def test_draws_a_bar_for_each_day(self, worked):
        html = html_of(sign_in(PeopleGroup.BOARD))
        bars = re.findall(r'<i class="(tc-\w+)"', card(html, "role_match"))
        assert len(bars) == 7
        assert bars[-1] == "tc-bad"
        assert set(bars[:-1]) == {"tc-none"}
        assert re.search(r'aria-label="Role match: [\d-]+: 66.7 % \(2 of 3\)"', html)
        assert "3 created, 3 started, 1 completed" in card(html, "flow")

    def test_shows_durations_by_type_role_and_agent(self, worked):
        Task.objects.filter(status="completed").update(
            started_at=datetime(2026, 1, 1, tzinfo=UTC),
            completed_at=datetime(2026, 1, 1, 1, 30, tzinfo=UTC),
        )
        late = Task.objects.get(status="completed")
        now = datetime.now(UTC)
        Task.objects.filter(id=late.id).update(
            started_at=now - timedelta(minutes=91), completed_at=now - timedelta(minutes=1)
        )
        html = html_of(sign_in(PeopleGroup.BOARD), days="30")
        for by, name in (("type", "api_design"), ("role", "architect"), ("agent", "architect")):
            assert name in card(html, f"by-{by}")
            assert "1 hour 30 minutes" in card(html, f"by-{by}")

    def test_takes_the_last_ones_where_many_were_completed(self, worked, monkeypatch):
        html = html_of(sign_in(PeopleGroup.BOARD))
        assert "completed last" not in html
        monkeypatch.setattr(admin_measures, "MAX_MEASURED", 1)
        assert "These are the 1 tasks completed last." in html_of(sign_in(PeopleGroup.BOARD))

    def test_says_that_there_is_nothing_yet(self, team):
        html = html_of(sign_in(PeopleGroup.BOARD))
        assert "nothing yet" in card(html, "role_match")
        assert "Nothing was completed" in card(html, "by-type")

    @pytest.mark.parametrize("period", PERIODS)
    def test_has_each_period(self, worked, period):
        html = html_of(sign_in(PeopleGroup.BOARD), days=period.name)
        assert f'aria-current="page">{period.title}' in html
        assert len(re.findall('<i class="tc-', card(html, "role_match"))) == period.steps

    @pytest.mark.parametrize("days", ["", "x", "-1", "0", "99999999999", EVIL])
    def test_takes_any_address(self, team, days):
        html = html_of(sign_in(PeopleGroup.BOARD), days=days)
        assert f'aria-current="page">{USUAL.title}' in html
        assert EVIL not in html

    def test_keeps_organisations_apart(self, worked, team):
        other = dev_team("other")
        board = sign_in(PeopleGroup.BOARD)
        assert "For which organisation?" in html_of(board)
        assert "nothing yet" in card(html_of(board, organisation=other.id), "role_match")
        assert "66.7 %" in card(html_of(board, organisation=team.id), "role_match")

    @pytest.mark.parametrize("asked", ["x", "0", "9" * 17, "9" * 60, "٣"])
    def test_asks_again_for_an_organisation_that_is_not_there(self, team, asked):
        dev_team("other")
        assert "For which organisation?" in html_of(sign_in(PeopleGroup.BOARD), organisation=asked)

    @pytest.mark.parametrize(
        ("desk", "status"), [*((desk, 200) for desk in PeopleGroup), (None, 403)]
    )
    def test_is_seen_by_every_desk(self, team, desk, status):
        assert page(sign_in(desk)).status_code == status

    def test_escapes_names(self, team, worked):
        team.name = EVIL
        team.save()
        assert EVIL not in html_of(sign_in(PeopleGroup.BOARD))

    def test_is_in_the_menu(self, team):
        html = sign_in(PeopleGroup.HR).get("/admin/").content.decode()
        assert reverse("admin:tasks_task_measures") in html
        assert reverse("admin:tasks_task_board") in html
        nobody = sign_in(None).get("/admin/").content.decode()
        assert reverse("admin:tasks_task_measures") not in nobody

    def test_costs_the_same_for_each_period(self, worked):
        client = sign_in(PeopleGroup.BOARD)
        html_of(client)
        for period in PERIODS:
            with CaptureQueriesContext(connection) as seen:
                html_of(client, days=period.name)
            assert len(seen) <= MOST_QUERIES, [q["sql"][:90] for q in seen]


class TestAPeriod:
    NOON = datetime(2026, 2, 15, 12, 34, 56, tzinfo=UTC)

    def test_of_days_begins_at_midnight_and_ends_with_today(self):
        week = PERIODS[1]
        assert week.begin(self.NOON) == datetime(2026, 2, 9, tzinfo=UTC)
        assert week.label(week.begin(self.NOON)) == "02-09"

    def test_of_hours_begins_with_a_full_one(self):
        day = PERIODS[0]
        assert day.begin(self.NOON) == datetime(2026, 2, 14, 13, tzinfo=UTC)
        assert day.label(day.begin(self.NOON)) == "13:00"

    def test_labels_fill_the_axis_evenly(self):
        for period in PERIODS:
            assert period.steps % period.every == 0
