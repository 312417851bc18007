"""The measures (Spec: tasks 48): each counted from what really happened."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone
from prometheus_client import CollectorRegistry

from core.actors import Person
from core.kept import KeptMetrics
from orgchart.models import Organisation, Role
from tasks import services
from tasks.insight import prometheus
from tasks.insight.figures import (
    ACROSS_ROLES,
    CONFLICTS,
    INVALID_TRANSITIONS,
    ROLE_MATCH,
    Counts,
)
from tasks.insight.measures import By, count_tasks, durations, measure_tasks
from tasks.models import Task
from tasks.rules.values import TaskUpdate
from tests.tasks.world import NOW, configure, dev_team, touch


@pytest.fixture
def figures(team):
    def measured(organisation=team):
        until = timezone.now() + timedelta(minutes=1)
        found = measure_tasks(organisation.id, since=until - timedelta(days=1), until=until)
        return {figure.measure: figure for figure in found}

    return measured


@pytest.fixture
def make(http):
    def made(**fields) -> str:
        return http.call("team-lead", "task_create", subject="x", **fields).result["id"]

    return made


class TestMeasures:
    def test_of_nothing_say_so(self, figures):
        found = figures()
        assert found[ROLE_MATCH].value is None
        assert found[ROLE_MATCH].reached is None
        assert found[INVALID_TRANSITIONS].value == 0
        assert found[INVALID_TRANSITIONS].reached

    def test_count_claims_within_and_across_roles(self, http, make, figures):
        for _ in range(3):
            http.call(
                "architect", "task_update", taskId=make(requiredRole="architect"), owner="architect"
            )
        one = make(requiredRole="backend-leader")
        http.call("team-lead", "task_update", taskId=one, owner="architect", forceAssign=True)
        found = figures()
        match, across = found[ROLE_MATCH], found[ACROSS_ROLES]
        assert (match.part, match.whole, match.value, match.reached) == (3, 4, 75.0, False)
        assert (across.part, across.whole, across.value, across.reached) == (1, 4, 25.0, False)

    def test_count_conflicts_of_all_updates_tried(self, http, make, figures):
        one = make()
        for _ in range(3):
            http.call("architect", "task_update", taskId=one, description="x")
        http.call("architect", "task_update", taskId=one, description="x", expectedVersion=9)
        found = figures()[CONFLICTS]
        assert (found.part, found.whole, found.value) == (1, 4, 25.0)

    def test_count_conflicts_of_every_tool_whose_updates_count(self, http, make, figures):
        Role.objects.filter(name="team-lead").update(tools=["assign_task", "manage_backlog"])
        touch(http.organisation)
        one = make()
        for version in (1, 9):
            http.call("team-lead", "assign_task", taskId=one, to="architect",
                      expectedVersion=version)  # fmt: skip
        two = make()
        for version in (1, 9):
            http.call("team-lead", "manage_backlog", action="edit", taskId=two, subject="y",
                      expectedVersion=version)  # fmt: skip
        found = figures()[CONFLICTS]
        assert (found.part, found.whole) == (2, 4)

    def test_count_no_updates_of_people_whose_conflicts_they_do_not_count(
        self, team, make, figures
    ):
        board = Person(
            username="olga", organisation_id=team.id, groups=frozenset({"Board"}), is_member=True
        )
        change = TaskUpdate(description="y")
        services.update_task(caller=board, task_id=make(), update=change, now=timezone.now())
        assert figures()[CONFLICTS].whole == 0

    def test_count_conflicts_that_warn_let_pass(self, team, http, make, figures):
        configure(team, enforcement="warn")
        http.call("architect", "task_update", taskId=make(), description="x", expectedVersion=9)
        found = figures()[CONFLICTS]
        assert (found.part, found.whole) == (1, 1)

    def test_count_invalid_transitions(self, http, make, figures):
        http.call("architect", "task_update", taskId=make(), status="completed")
        found = figures()[INVALID_TRANSITIONS]
        assert (found.part, found.whole, found.value, found.reached) == (1, None, 1.0, False)

    @pytest.mark.parametrize("change", [{"description": "y"}, {"owner": "architect"}])
    def test_count_no_transition_where_none_was_attempted(self, http, make, figures, change):
        one = make()
        http.call("team-lead", "task_update", taskId=one, status="deleted")
        assert http.call("team-lead", "task_update", taskId=one, **change).code == (
            "INVALID_TRANSITION"
        )
        assert figures()[INVALID_TRANSITIONS].value == 0
        http.call("team-lead", "task_update", taskId=one, status="pending", **change)
        assert figures()[INVALID_TRANSITIONS].value == 1

    def test_are_each_organisations_own(self, http, make, figures):
        http.call("architect", "task_update", taskId=make(), status="completed")
        assert figures(dev_team("other"))[INVALID_TRANSITIONS].value == 0

    def test_are_of_their_period(self, team, http, make):
        http.call("architect", "task_update", taskId=make(), status="completed")
        found = measure_tasks(team.id, since=NOW - timedelta(days=1), until=NOW)
        assert [figure.part for figure in found] == [0, 0, 0, 0]


class TestStretches:
    def test_divide_a_period_and_add_up_to_it(self, team, http, make):
        for days in (0, 0, 2):
            one = make()
            http.call("architect", "task_update", taskId=one, owner="architect")
            Task.objects.filter(number=one).update(claimed_at=NOW + timedelta(days=days))
        period = {"since": NOW, "until": NOW + timedelta(days=2, hours=12)}
        found = count_tasks(team.id, **period, step=timedelta(days=1))
        assert [one.claimed for one in found] == [2, 0, 1]
        assert sum(found, Counts()) == count_tasks(team.id, **period)[0]

    def test_cost_the_same_however_many_there_are(self, team, http, django_assert_num_queries):
        with django_assert_num_queries(3):
            found = count_tasks(
                team.id, since=NOW, until=NOW + timedelta(days=90), step=timedelta(hours=1)
            )
        assert len(found) == 90 * 24

    def test_count_what_became_of_tasks(self, team, http, make):
        one = make()
        http.call("architect", "task_update", taskId=one, owner="architect", status="in_progress")
        http.call("architect", "task_update", taskId=one, status="completed")
        until = timezone.now() + timedelta(minutes=1)
        (found,) = count_tasks(team.id, since=until - timedelta(days=1), until=until)
        assert (found.created, found.started, found.completed) == (1, 1, 1)

    def test_of_no_time_are_one_of_nothing(self, team):
        assert count_tasks(team.id, since=NOW, until=NOW) == [Counts()]


class TestDurations:
    def test_have_mean_and_median_by_type_role_and_agent(self, team, http, make):
        for place, minutes in enumerate((1, 2, 9)):
            one = make(taskType="testing" if place else None)
            http.call("test-leader", "task_update", taskId=one, owner="test-leader")
            http.call("test-leader", "task_update", taskId=one, status="in_progress")
            http.call("test-leader", "task_update", taskId=one, status="completed")
            Task.objects.filter(number=one).update(
                created_at=NOW - timedelta(minutes=5),
                claimed_at=NOW - timedelta(minutes=2),
                started_at=NOW,
                completed_at=NOW + timedelta(minutes=minutes),
            )
        period = {"since": NOW, "until": NOW + timedelta(hours=1)}
        (by_agent,) = durations(team.id, By.AGENT, **period)
        assert (by_agent.name, by_agent.count, by_agent.mean, by_agent.median) == (
            "test-leader", 3, 240.0, 120.0,
        )  # fmt: skip
        assert by_agent.waited == 180.0
        assert [one.name for one in durations(team.id, By.ROLE, **period)] == ["test-leader"]
        (last,) = durations(team.id, By.AGENT, **period, most=1)
        assert (last.count, last.mean) == (1, 540.0)
        by_type = {one.name: one.mean for one in durations(team.id, By.TYPE, **period)}
        assert by_type == {"none": 60.0, "testing": 330.0}


class TestShowing:
    def test_report_names_figures_and_targets(self, http, make):
        http.call("architect", "task_update", taskId=make(), status="completed")
        out = StringIO()
        call_command("tasks", "report", "dev-team", stdout=out)
        assert "Invalid transitions: 1, target 0: missed" in out.getvalue()
        assert "Role match: nothing yet (0 of 0), target > 95 %: -" in out.getvalue()

    def test_metrics_have_them_per_organisation(self, client, http, make, monkeypatch):
        fresh = CollectorRegistry()
        fresh.register(KeptMetrics(prometheus.count_measures, seconds=60))
        monkeypatch.setattr("nexus_site.serving.health.LIVE", fresh)
        http.call("architect", "task_update", taskId=make(), status="completed")
        text = client.get("/metrics").content.decode()
        number = Organisation.objects.get(slug="dev-team").id
        labels = f'measure="invalid_transitions",organisation="{number}"'
        assert any(
            set(line.split("{")[1].split("}")[0].split(",")) == set(labels.split(","))
            and line.endswith(" 1.0")
            for line in text.splitlines()
            if line.startswith("nexus_tasks_measure{")
        )
        assert f'nexus_tasks_unfinished{{organisation="{number}",status="pending"}} 1.0' in text
        assert "dev-team" not in text, "metrics name no tenant"
