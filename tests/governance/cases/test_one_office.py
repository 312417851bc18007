"""An agent acts in one office of a case, whatever role it is given meanwhile."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from governance.models import CaseOfficer, Violation
from ledger.models import Event
from orgchart.models import Agent, Organisation, Role
from tests.governance.cases.world import Play

pytestmark = pytest.mark.django_db


@pytest.fixture
def play(company):
    return Play(company)


def join(play, handle, office):
    """Another agent with this office."""
    same = Agent.objects.get(organisation=play.company.organisation, handle=office)
    Agent.objects.create(
        organisation=same.organisation, handle=handle, role=same.role, reports_to=same.reports_to
    )
    Organisation.objects.update(policy_version=F("policy_version") + 1)


def give(play, handle, office):
    """Give an agent the role of another office, as a pack, a person or HR can."""
    play.company.key(handle)
    role = Role.objects.get(organisation=play.company.organisation, name=office)
    Agent.objects.filter(organisation=play.company.organisation, handle=handle).update(role=role)
    Organisation.objects.update(policy_version=F("policy_version") + 1)


def is_refused(play, answer):
    """Whether it is the violation that two offices of one agent are."""
    found = Violation.objects.get(case_id=play.id)
    return (answer.code, found.fault) == ("STAGE_DENIED", "OVERLAPPING_DUTIES")


class TestWhoRuled:
    @pytest.fixture
    def ruled(self, play):
        play.to("REVIEW").submit("REVIEW", "REJECTED")
        assert play.decide("CONTINUE").status == 200
        return play

    def test_submits_no_stage_later(self, ruled):
        give(ruled, "conductor", "implementer")
        assert is_refused(ruled, ruled.submit("IMPLEMENTATION", by="conductor"))

    def test_reads_nothing_in_another_office(self, ruled):
        give(ruled, "conductor", "implementer")
        assert ruled.inputs("conductor").result["inputs"] == {}

    def test_rules_again(self, ruled):
        ruled.submit("IMPLEMENTATION")
        ruled.submit("REVIEW", "REJECTED")
        assert ruled.decide("CONTINUE").status == 200


class TestWhoRead:
    """What an office was shown is an illegal input of the next one (Spec: constitution 4)."""

    def test_anothers_analysis_does_not_implement(self, play):
        play.to("TASKS")
        assert "ANALYSIS" in play.inputs("planner").result["inputs"]
        join(play, "second", "planner")
        give(play, "planner", "implementer")
        assert play.submit("TASKS", by="second").status == 200
        assert play.inputs("planner").result["inputs"] == {}
        assert is_refused(play, play.submit("IMPLEMENTATION", by="planner"))

    def test_an_implementation_does_not_rule(self, play):
        play.to("REVIEW")
        assert "IMPLEMENTATION" in play.inputs("reviewer").result["inputs"]
        join(play, "second", "reviewer")
        give(play, "reviewer", "conductor")
        play.submit("REVIEW", "APPROVED", by="second")
        play.submit("TEST", "PASSED")
        assert is_refused(play, play.decide("DELIVER", by="reviewer"))

    def test_nothing_yet_is_free(self, play):
        assert play.inputs("tester").result["inputs"] == {}
        join(play, "second", "tester")
        give(play, "tester", "planner")
        play.to("TASKS")
        assert play.submit("TASKS", by="tester").status == 200

    def test_one_case_is_free_in_another(self, play):
        play.to("TASKS").inputs("planner")
        join(play, "second", "planner")
        give(play, "planner", "implementer")
        other = Play(play.company).to("TASKS")
        other.submit("TASKS", by="second")
        assert other.submit("IMPLEMENTATION", by="planner").status == 200


class TestTheTurn:
    def test_is_not_of_an_agent_that_acted_in_another_office(self, play):
        play.to("TASKS").inputs("planner")
        join(play, "second", "planner")
        give(play, "planner", "implementer")
        play.submit("TASKS", by="second")
        listed = {
            handle: play.company.call(handle, "case_list").result["cases"][0]["your_turn"]
            for handle in ("planner", "implementer")
        }
        assert listed == {"planner": False, "implementer": True}
        assert turns_of(play, "planner") == ["TASKS"]
        assert turns_of(play, "implementer") == ["IMPLEMENTATION"]


def turns_of(play, handle):
    """The stages of which an agent was told on its stream that they are its turn."""
    rows = Event.objects.filter(action="case.turn", for_agent_id=play.company.agent(handle).id)
    return [row.details["stage"] for row in rows.order_by("seq")]


def test_the_database_keeps_one_office_of_an_agent(play):
    agent = play.company.agent("analyst")
    with pytest.raises(IntegrityError, match="case_officer_once"), transaction.atomic():
        CaseOfficer.objects.create(
            organisation=play.company.organisation, case=play.row, agent=agent, office="TESTER",
            since=timezone.now(),
        )  # fmt: skip
    with pytest.raises(IntegrityError, match="only grows"), transaction.atomic():
        CaseOfficer.objects.filter(agent=agent).update(office="TESTER")
