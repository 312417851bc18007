"""A tool is taken away or limited; nothing ever gives more than the tool and the role do."""

import pytest
from django.db import IntegrityError, transaction

from ledger.models import Event
from orgchart.models import ToolOverride
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import current_policy
from orgchart.tool_restrictions import clear_tool_restriction, set_tool_restriction
from tests.orgchart.world import NOW, person

pytestmark = pytest.mark.django_db
CHAT, CODING = ToolMode.CHAT_SAFE, ToolMode.CODING
BOTH = frozenset({CHAT, CODING})


def tighten(acme, modes=frozenset(), **options):
    return set_tool_restriction(
        organisation_id=acme.id,
        **{"tool": "send_mail", "tool_modes": BOTH, **options},
        modes=frozenset(modes),
        caller=person(acme),
        now=NOW,
        reason="quiet",
    )


def left(acme, handle, tool="send_mail"):
    policy = current_policy(acme.id)
    return policy.restricted_modes(policy.agents[handle], tool)


class TestTightening:
    def test_of_one_agent_touches_nobody_else(self, acme):
        done = tighten(acme, agent=acme.agents.get(handle="hand_one"))
        assert done.difference.forbidden == (
            "hand_one may call send_mail in chat_safe",
            "hand_one may call send_mail in coding",
        )
        assert left(acme, "hand_one") == frozenset()
        assert left(acme, "hand_two") is None

    def test_of_a_role_touches_its_holders(self, acme):
        tighten(acme, {CHAT}, role_id=acme.roles.get(name="hand").id)
        assert left(acme, "hand_one") == left(acme, "hand_two") == {CHAT}
        assert left(acme, "lead") is None

    def test_of_the_organisation_touches_everybody(self, acme):
        tighten(acme, {CODING})
        assert {handle: left(acme, handle) for handle in ("boss", "hand_one")} == {
            "boss": {CODING},
            "hand_one": {CODING},
        }

    def test_several_leave_what_all_of_them_leave(self, acme):
        tighten(acme, {CHAT})
        tighten(acme, {CODING}, role_id=acme.roles.get(name="hand").id)
        assert left(acme, "hand_one") == frozenset()
        assert left(acme, "lead") == {CHAT}

    def test_never_loosens_what_the_tool_itself_declares(self, acme):
        with pytest.raises(ValueError, match="can only remove modes; coding is not among its own"):
            tighten(acme, {CODING}, tool_modes=frozenset({CHAT}))
        assert ToolOverride.objects.count() == 1
        assert Event.objects.count() == 1

    def test_replaces_an_earlier_one_of_the_same_scope(self, acme):
        tighten(acme, {CHAT})
        tighten(acme, {CODING})
        assert ToolOverride.objects.filter(tool="send_mail").count() == 1
        assert left(acme, "boss") == {CODING}

    def test_is_recorded(self, acme):
        tighten(acme)
        event = Event.objects.order_by("seq").last()
        assert (event.action, event.subject, event.reason) == (
            "tool.tightened",
            "tool:send_mail",
            "quiet",
        )
        assert ToolOverride.objects.get(tool="send_mail").set_by == "human:alice"

    def test_leaves_nothing_of_a_preview(self, acme):
        assert tighten(acme, preview=True).difference.forbidden
        assert left(acme, "boss") is None

    def test_holds_for_one_scope_by_constraint(self, acme):
        with pytest.raises(IntegrityError, match="override_one_scope"), transaction.atomic():
            ToolOverride.objects.create(
                organisation=acme,
                tool="send_mail",
                agent=acme.agents.get(handle="boss"),
                role=acme.roles.get(name="boss"),
                set_by="x",
            )


def test_taking_it_back_gives_what_was_there_and_no_more(acme):
    tighten(acme)
    done = clear_tool_restriction(
        restriction=ToolOverride.objects.get(tool="send_mail"),
        caller=person(acme),
        now=NOW,
        reason="enough",
    )
    assert "hand_one may call send_mail in chat_safe" in done.difference.allowed
    assert left(acme, "hand_one") is None
    assert Event.objects.order_by("seq").last().action == "tool.restored"
