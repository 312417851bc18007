"""Frames as people see them: who waits for whom, and the Board's way to end what hangs."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.permissions import PeopleGroup
from ledger.models import Event
from orgchart.models import Agent
from tests.admin.forms import filled
from tests.admin.places import act_page, change_page, list_page
from tests.company import load_company
from toolbox.admin.frames import tree
from toolbox.frames.ending import cancel_frame
from toolbox.models import Frame

OTHER, LEADER, DEVELOPER = "investment_leader", "coding_leader", "coding_developer"
REASON = "Nobody needs it any more."


@pytest.fixture
def company(db):
    return load_company("soloqueue")


def opened(company, source, to, instruction):
    answer = company.call(source, "delegate_to", to=to, instruction=instruction)
    return Frame.objects.get(id=answer.result["frame_id"])


@pytest.fixture
def stack(company):
    """One leader waits for another, and that one for its member."""
    outer = opened(company, OTHER, LEADER, "plan <b>it</b>")
    company.call(LEADER, "next_frame")
    return outer, opened(company, LEADER, DEVELOPER, "build it")


def cancel(client, frame):
    page = act_page(frame, "cancel")
    return client.post(page, filled(client, page, "act-form", reason=REASON))


class TestTheOpenStacks:
    def test_are_a_tree_of_who_waits_for_whom(self, observer, stack):
        outer, inner = stack
        html = observer.get(list_page(Frame)).content.decode().split('id="stacks"')[1]
        drawn = html.split("</section>")[0]
        assert f"{OTHER} → {LEADER}" in drawn
        assert f"{LEADER} → {DEVELOPER}" in drawn
        assert drawn.index(change_page(outer)) < drawn.index(change_page(inner))
        assert drawn.count("<ul") == 2
        assert "left)" in drawn
        assert "<b>" not in drawn

    def test_are_not_those_that_ended(self, observer, company, stack):
        outer, _ = stack
        cancel_frame(
            frame_id=outer.id, caller=company.person("Board"), reason=REASON, now=timezone.now()
        )
        assert 'id="stacks"' not in observer.get(list_page(Frame)).content.decode()

    def test_say_whose_time_is_over(self, stack):
        later = timezone.now() + timedelta(days=2)
        assert tree(stack, now=later).count("its time is over") == 2

    def test_cost_the_same_however_many_they_are(self, observer, company, stack):
        def cost():
            with CaptureQueriesContext(connection) as seen:
                assert observer.get(list_page(Frame)).status_code == 200
            return len(seen)

        cost()
        few = cost()
        for number in range(5):
            opened(company, LEADER, DEVELOPER, f"part {number}")
        assert cost() <= few


class TestAFrame:
    def test_shows_what_it_stands_on_and_what_stands_on_it(self, observer, stack):
        outer, inner = stack
        assert change_page(inner) in observer.get(change_page(outer)).content.decode()
        assert change_page(outer) in observer.get(change_page(inner)).content.decode()


class TestCancel:
    def test_ends_the_stack_and_tells_the_opener(self, board, stack):
        outer, inner = stack
        assert act_page(outer, "cancel") in board.get(change_page(outer)).content.decode()
        assert cancel(board, outer).status_code == 302
        states = {row.id: row.state for row in Frame.objects.all()}
        assert states == {outer.id: "failed", inner.id: "cancelled"}
        event = Event.objects.get(action="frame.failed")
        assert (event.actor, event.reason) == ("human:board", REASON)
        assert event.for_agent_id == Agent.objects.get(handle=OTHER).id
        assert act_page(outer, "cancel") not in board.get(change_page(outer)).content.decode()

    def test_of_a_stale_page_is_refused(self, board, company, stack):
        outer, inner = stack
        page = act_page(inner, "cancel")
        data = filled(board, page, "act-form", reason=REASON)
        cancel_frame(
            frame_id=outer.id, caller=company.person("Board"), reason="x", now=timezone.now()
        )
        answer = board.post(page, data)
        assert answer.status_code == 200
        assert "has ended, it is cancelled" in answer.content.decode()
        newest = Event.objects.order_by("-seq").first()
        assert (newest.action, newest.code) == ("human.denied", "INVALID_TRANSITION")
        inner = Frame.objects.get(id=inner.id)
        assert inner.reason != REASON

    @pytest.mark.parametrize(
        "desk", [None, PeopleGroup.HR, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER]
    )
    def test_is_for_nobody_else(self, sign_in, stack, desk):
        outer, _ = stack
        client = sign_in(desk)
        assert client.post(act_page(outer, "cancel"), {"reason": REASON}).status_code == 403
        outer = Frame.objects.get(id=outer.id)
        assert outer.state == "taken"
        if desk:
            assert act_page(outer, "cancel") not in client.get(change_page(outer)).content.decode()
