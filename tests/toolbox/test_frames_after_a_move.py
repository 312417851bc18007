"""A frame between agents of which one was moved: it carries no text any more (Spec: frames 15)."""

import pytest
from django.utils import timezone

from orgchart.leaders import replace_leader
from orgchart.models import Agent, Group
from orgchart.services import change_policy
from tests.company import load_company
from toolbox.frames.ending import end_due_frames
from toolbox.models import Frame

LEADER, OTHER = "coding_leader", "investment_leader"
DEVELOPER, ARCHITECT = "coding_developer", "coding_architect"
SECRET = "what the group found"


@pytest.fixture
def company(db):
    return load_company("soloqueue")


def change(company, apply):
    change_policy(
        organisation_id=company.organisation.id,
        apply=lambda row: apply(row) and None,
        caller=company.system,
        action="agent.changed",
        now=timezone.now(),
    )


def leave(company, handle):
    change(company, lambda _: Agent.objects.filter(handle=handle).update(group=None, name=""))


def move(company, handle, group, above):
    def apply(_):
        place = {"group": Group.objects.get(slug=group), "name": "newcomer"}
        return Agent.objects.filter(handle=handle).update(**place, reports_to=company.agent(above))

    change(company, apply)


def delegate(company, source, to):
    answer = company.call(source, "delegate_to", to=to, instruction=SECRET)
    return answer.result["frame_id"]


def take(company, handle):
    return company.call(handle, "next_frame").result["frame"]


def result_of(company, opener, frame_id):
    return company.call(opener, "next_frame", frame_id=frame_id).result["frame"]


class TestAnOpenFrame:
    def test_is_not_taken_by_who_was_moved_to_another_group(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        move(company, DEVELOPER, "investment", OTHER)
        assert take(company, DEVELOPER) is None
        Frame.objects.update(due_at=timezone.now())
        assert end_due_frames(timezone.now()) == 1
        assert result_of(company, LEADER, frame_id)["state"] == "failed"

    def test_lets_the_next_one_be_taken(self, company):
        delegate(company, LEADER, DEVELOPER)
        move(company, DEVELOPER, "investment", OTHER)
        frame_id = delegate(company, OTHER, DEVELOPER)
        assert take(company, DEVELOPER)["frame_id"] == frame_id

    def test_of_a_leader_that_was_replaced_is_not_taken(self, company):
        delegate(company, LEADER, DEVELOPER)
        group = Group.objects.get(slug="coding")
        replace_leader(
            group=group, leader=company.agent(ARCHITECT), caller=company.system,
            now=timezone.now(), reason="r", expected_version=None,
        )  # fmt: skip
        assert take(company, DEVELOPER) is None


class TestATakenFrame:
    @pytest.mark.parametrize("status", ["ok", "failed"])
    @pytest.mark.parametrize(
        "moved", [leave, lambda company, who: move(company, who, "investment", OTHER)]
    )
    def test_ends_without_the_text_of_who_was_moved(self, company, moved, status):
        frame_id = delegate(company, LEADER, DEVELOPER)
        assert take(company, DEVELOPER)["instruction"] == SECRET
        moved(company, DEVELOPER)
        answer = company.call(DEVELOPER, "return_result", result="a message", status=status)
        assert answer.result == {"frame_id": frame_id, "state": "failed"}
        seen = result_of(company, LEADER, frame_id)
        assert (seen["state"], seen["result"]["error"]) == ("failed", "closed")
        assert "a message" not in str(seen)

    def test_carries_the_result_of_who_stays(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        leave(company, ARCHITECT)
        company.call(DEVELOPER, "return_result", result="done")
        assert result_of(company, LEADER, frame_id)["result"] == "done"
