"""Frames of an agent that was deactivated end with its service (Spec: frames 12)."""

import pytest
from django.utils import timezone

from ledger.models import Event
from orgchart.models import Agent, Group
from orgchart.services import change_policy
from orgchart.staffing import activate_agent, deactivate_agent
from tests.company import load_company
from toolbox.frames import ending
from toolbox.frames.ending import end_due_frames
from toolbox.frames.services import enter_skill
from toolbox.models import Frame

LEADER, OTHER = "coding_leader", "investment_leader"
DEVELOPER, ARCHITECT = "coding_developer", "coding_architect"


@pytest.fixture
def company(db):
    """SoloQueue, where the members of the coding group may delegate to each other."""
    made = load_company("soloqueue")
    change_policy(
        organisation_id=made.organisation.id,
        apply=lambda _: Group.objects.filter(slug="coding").update(member_delegation=True) and None,
        caller=made.system,
        action="group.changed",
        now=timezone.now(),
    )
    return made


def delegate(company, source, to):
    company.key(to)
    return company.call(source, "delegate_to", to=to, instruction="Look").result["frame_id"]


def take(company, handle):
    return company.call(handle, "next_frame").result["frame"]


def deactivate(company, handle):
    change = {"handle": handle, "caller": company.system, "now": timezone.now(), "reason": "r"}
    deactivate_agent(**change)
    return lambda: activate_agent(**change)


def end(company):
    return end_due_frames(timezone.now())


def state(frame_id):
    return Frame.objects.get(id=frame_id).state


class TestAFrameOfAnAgentThatLeft:
    @pytest.mark.parametrize("taken", [True, False])
    def test_fails_for_who_asked_for_it(self, company, taken):
        frame_id = delegate(company, LEADER, DEVELOPER)
        if taken:
            take(company, DEVELOPER)
        deactivate(company, DEVELOPER)
        assert end(company) == 1
        seen = company.call(LEADER, "next_frame", frame_id=frame_id).result["frame"]
        assert (seen["state"], seen["result"]["error"]) == ("failed", "closed")
        assert "deactivated" not in str(seen)
        assert end(company) == 0

    def test_ends_with_what_was_opened_inside_it(self, company):
        outer = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        inner = delegate(company, DEVELOPER, ARCHITECT)
        deactivate(company, DEVELOPER)
        end(company)
        assert (state(outer), state(inner)) == ("failed", "cancelled")
        assert take(company, ARCHITECT) is None

    @pytest.mark.parametrize("taken", [True, False])
    def test_that_it_opened_is_cancelled(self, company, taken):
        frame_id = delegate(company, DEVELOPER, ARCHITECT)
        if taken:
            take(company, ARCHITECT)
        deactivate(company, DEVELOPER)
        assert end(company) == 1
        assert state(frame_id) == "cancelled"
        assert take(company, ARCHITECT) is None

    def test_is_not_there_when_it_is_activated_again(self, company):
        delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        caller = company.caller(DEVELOPER)
        enter_skill(caller=caller, name="skill__x", prompt="p", tools=[], now=timezone.now())
        activate = deactivate(company, DEVELOPER)
        end(company)
        activate()
        company.keys.pop(DEVELOPER)
        assert company.get("/api/v1/me", DEVELOPER).body["frame"] is None

    @pytest.mark.parametrize("who", [DEVELOPER, LEADER])
    def test_is_not_there_either_where_no_scheduler_ran_meanwhile(self, company, who):
        worked_in = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        opened_inside = delegate(company, DEVELOPER, ARCHITECT)
        change = {"caller": company.system, "now": timezone.now(), "reason": "r"}
        Agent.objects.filter(handle=who).update(active=False)
        activate_agent(handle=who, **change)
        company.keys.pop(who)
        assert company.get("/api/v1/me", DEVELOPER).body["frame"] is None
        assert state(worked_in) == ("failed" if who == DEVELOPER else "cancelled")
        assert state(opened_inside) == "cancelled"

    def test_of_others_stays(self, company):
        frame_id = delegate(company, LEADER, ARCHITECT)
        deactivate(company, DEVELOPER)
        assert end(company) == 0
        assert state(frame_id) == "open"


class TestAFrameWithMoreAboveThanEndsAtOnce:
    """Spec: frames 17."""

    @pytest.fixture
    def opened(self, company, monkeypatch):
        """What the developer opened in its frame, one of them taken and gone on with."""
        monkeypatch.setattr(ending, "MOST_AT_ONCE", 2)
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        opened = [delegate(company, DEVELOPER, ARCHITECT) for _ in range(5)]
        take(company, ARCHITECT)
        opened.append(enter_skill(
            caller=company.caller(ARCHITECT), name="skill__x", prompt="p", tools=[],
            now=timezone.now(),
        ).id)  # fmt: skip
        company.call(DEVELOPER, "return_result", frame_id=frame_id, result="done")
        return opened

    def test_ends_the_first_at_once_and_the_job_ends_the_rest(self, company, opened):
        ended = [state(frame_id) for frame_id in opened]
        assert ended.count("cancelled") == 2
        assert end(company) == 4
        assert {state(frame_id) for frame_id in opened} == {"cancelled"}
        assert end(company) == 0
        told = Event.objects.filter(
            action="frame.cancelled", for_agent_id=company.agent(ARCHITECT).id
        )
        assert sorted(event.subject for event in told) == sorted(f"frame:{one}" for one in opened)
