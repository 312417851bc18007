"""manage_tools through the door: only downward, only tighter, only one's own back."""

from datetime import timedelta

import pytest

from governance.staff import rules
from ledger.models import Event
from mailroom.models import Mail
from orgchart.compiling import compile_policy
from orgchart.models import Agent, ToolOverride
from tests.documents.world import NOW, caller_of, found
from toolbox import door
from toolbox.faces.prompt import build


def call(nexus, by="it_manager", **params):
    return door.call(caller_of(nexus, by), "manage_tools", params, now=NOW).body


def tighten(nexus, agent="backend_worker", tool="send_mail", modes=(), **more):
    return call(
        nexus, action="tighten", agent=agent, tool=tool, modes=list(modes), reason="because", **more
    )


def restore(nexus, agent="backend_worker", tool="send_mail", **more):
    return call(nexus, action="restore", agent=agent, tool=tool, reason="fine again", **more)


def outcome(nexus, agent, tool, **params):
    return door.call(caller_of(nexus, agent), tool, params, now=NOW).body.get("error_code", "OK")


def mail(nexus, agent="backend_worker"):
    return outcome(nexus, agent, "send_mail", to="it_manager", type="info", subject="s", body="b")


class TestTighten:
    def test_takes_a_tool_away_and_tells_the_worker(self, nexus):
        assert mail(nexus) == "OK"
        answer = tighten(nexus)
        assert answer["ok"], answer
        assert answer["result"]["modes"] == []
        assert mail(nexus) == "TOOL_DENIED"
        assert mail(nexus, "qa_worker") == "OK"
        assert Mail.objects.filter(to_agent="backend_worker", from_agent="system").count() == 1
        event = Event.objects.get(action="tool.tightened")
        assert "backend_worker may call send_mail in chat_safe" in event.details["forbidden"]

    def test_leaves_the_modes_that_are_named(self, nexus):
        assert tighten(nexus, modes=["coding"])["ok"]
        assert mail(nexus) == "MODE_DENIED"

    def test_takes_the_addressees_from_the_prompt_as_well(self, nexus):
        def prompt():
            return build(caller_of(nexus, "backend_worker"))

        assert "You may write to:" in prompt()
        assert tighten(nexus)["ok"]
        assert "send_mail is taken away" in prompt()
        assert "You may write to:" not in prompt()

    def test_goes_on_tightening(self, nexus):
        assert tighten(nexus, modes=["coding"])["ok"]
        assert tighten(nexus, modes=[])["ok"]
        assert ToolOverride.objects.get().modes == []

    @pytest.mark.parametrize(
        ("params", "code"),
        [
            ({"tool": "read_file", "modes": ["chat_safe"]}, "INVALID_PARAMS"),
            ({"tool": "read_file", "modes": ["chat_safe", "coding"]}, "INVALID_PARAMS"),
            ({"tool": "read_inbox"}, "INVALID_PARAMS"),
            ({"tool": "accept_contract"}, "INVALID_PARAMS"),
            ({"tool": "no_such_tool"}, "INVALID_PARAMS"),
            ({"modes": ["root"]}, "INVALID_PARAMS"),
            ({"agent": "research_worker"}, "NOT_YOURS"),
            ({"agent": "hr_manager"}, "NOT_YOURS"),
            ({"agent": "ceo"}, "NOT_YOURS"),
            ({"agent": "it_manager"}, "NOT_YOURS"),
            ({"agent": "nobody"}, "NOT_FOUND"),
            ({"expected_policy_version": 99}, "VERSION_MISMATCH"),
        ],
    )
    def test_refuses_what_is_not_the_managers_to_tighten(self, nexus, params, code):
        before = compile_policy(nexus.id)
        assert tighten(nexus, **params)["error_code"] == code
        assert compile_policy(nexus.id) == before

    @pytest.mark.parametrize("missing", ["agent", "tool", "modes", "reason"])
    def test_needs_all_it_names(self, nexus, missing):
        params = {"agent": "qa_worker", "tool": "send_mail", "modes": [], "reason": "r"}
        del params[missing]
        answer = call(nexus, action="tighten", **params)
        assert answer["error_code"] == "INVALID_PARAMS"
        assert missing in answer["details"]

    def test_never_widens_its_own_tightening(self, nexus):
        assert tighten(nexus, modes=[])["ok"]
        assert tighten(nexus, modes=["chat_safe"])["error_code"] == "INVALID_PARAMS"
        assert mail(nexus) == "TOOL_DENIED"

    def test_is_done_a_limited_number_of_times_within_an_hour(self, nexus, monkeypatch):
        """A manager in a loop made each form of the organisation out of date that a person read."""
        monkeypatch.setattr(rules, "MOST_RESTRICTIONS", 2)
        assert tighten(nexus)["ok"]
        assert restore(nexus)["ok"]
        version = compile_policy(nexus.id).version
        for answer in (tighten(nexus), restore(nexus)):
            assert answer["error_code"] == "RATE_LIMITED"
        assert compile_policy(nexus.id).version == version
        params = {"action": "tighten", "agent": "backend_worker", "tool": "send_mail", "modes": []}
        later = NOW + timedelta(hours=2)
        caller = caller_of(nexus, "it_manager")
        answer = door.call(caller, "manage_tools", {**params, "reason": "because"}, now=later)
        assert answer.body["ok"]

    def test_is_for_who_holds_the_tool(self, nexus):
        for handle in ("ceo", "hr_manager", "product_manager", "backend_worker"):
            answer = call(nexus, by=handle, action="list")
            assert answer["error_code"] == "TOOL_NOT_BOUND"

    def test_tells_no_reason_to_a_worker_that_the_manager_may_not_write_to(self, nexus):
        """Spec: mail 43: a co-manager may be no contact of the worker."""
        research = Agent.objects.get(organisation=nexus, handle="research_worker")
        research.co_managers.add(Agent.objects.get(organisation=nexus, handle="it_manager"))
        assert tighten(nexus, agent="research_worker", tool="web_search")["ok"]
        assert restore(nexus, agent="research_worker", tool="web_search")["ok"]
        mails = dict(Mail.objects.filter(to_agent="research_worker").values_list("subject", "body"))
        assert mails == {
            "web_search was restricted by it_manager": "You no longer have web_search.",
            "web_search was restored by it_manager": "The restriction was removed.",
        }
        assert not Mail.objects.filter(to_agent="research_worker").exclude(quoted=[]).exists()


class TestRestore:
    def test_gives_back_what_role_and_tool_give(self, nexus):
        tighten(nexus)
        assert restore(nexus)["ok"]
        assert mail(nexus) == "OK"
        assert not ToolOverride.objects.exists()

    def test_refuses_where_nothing_is_tightened(self, nexus):
        assert restore(nexus)["error_code"] == "NOT_FOUND"

    @pytest.mark.parametrize("set_by", ["human:alice", "agent:ceo", "system:pack"])
    def test_refuses_what_somebody_else_tightened(self, nexus, set_by):
        worker = Agent.objects.get(handle="backend_worker")
        ToolOverride.objects.create(
            organisation=nexus, tool="send_mail", agent=worker, modes=["coding"], set_by=set_by
        )
        assert restore(nexus)["error_code"] == "NOT_YOURS"
        assert tighten(nexus)["error_code"] == "NOT_YOURS"
        assert ToolOverride.objects.get().set_by == set_by

    def test_leaves_the_organisations_tightening_in_place(self, nexus):
        ToolOverride.objects.create(
            organisation=nexus, tool="submit_report", modes=["coding"], set_by="human:alice"
        )
        tool = "submit_report"
        assert restore(nexus, tool=tool)["error_code"] == "NOT_FOUND"
        assert tighten(nexus, tool=tool, modes=["chat_safe"])["ok"]
        assert restore(nexus, tool=tool)["ok"]
        assert outcome(nexus, "backend_worker", tool) == "MODE_DENIED"


class TestList:
    def test_shows_what_is_tightened_for_ones_own(self, nexus):
        tighten(nexus)
        other = Agent.objects.get(handle="research_worker")
        ToolOverride.objects.create(
            organisation=nexus, tool="web_search", agent=other, modes=[], set_by="human:alice"
        )
        rows = call(nexus, action="list")["result"]["tightened"]
        assert [(r["agent"], r["tool"], r["modes"]) for r in rows] == [
            ("backend_worker", "send_mail", [])
        ]
        assert call(nexus, action="list", agent="qa_worker")["result"]["tightened"] == []
        assert call(nexus, action="list", agent="research_worker")["error_code"] == "NOT_YOURS"

    def test_is_shown_page_by_page(self, nexus):
        tools = ["send_mail", "submit_report", "read_contract"]
        for each in tools:
            assert tighten(nexus, tool=each)["ok"]
        first = call(nexus, action="list", limit=2)["result"]
        assert [row["tool"] for row in first["tightened"]] == ["read_contract", "submit_report"]
        rest = call(nexus, action="list", limit=2, cursor=first["next_cursor"])["result"]
        assert [row["tool"] for row in rest["tightened"]] == ["send_mail"]
        assert rest["next_cursor"] is None
        assert call(nexus, action="list", cursor="x")["error_code"] == "INVALID_PARAMS"

    def test_shows_no_reason_of_a_manager_that_may_not_write_to_the_caller(self, nexus):
        """Spec: mail 43: two managers that share a worker are no contacts of each other."""
        it = Agent.objects.get(handle="it_manager")
        second = Agent.objects.create(
            organisation=nexus, handle="it_manager_2", role=it.role, reports_to=it.reports_to
        )
        Agent.objects.get(handle="backend_worker").co_managers.add(second)
        assert tighten(nexus)["ok"]
        assert tighten(nexus, agent="qa_worker")["ok"]
        own, *_ = call(nexus, action="list", agent="backend_worker")["result"]["tightened"]
        rows = call(nexus, by="it_manager_2", action="list")["result"]["tightened"]
        assert [(row["set_by"], row["reason"]) for row in rows] == [("agent:it_manager", "")]
        assert own["reason"] == "because"
        ToolOverride.objects.update(set_by="human:alice")
        rows = call(nexus, by="it_manager_2", action="list")["result"]["tightened"]
        assert [row["reason"] for row in rows] == ["because"]

    def test_never_crosses_organisations(self, nexus):
        tighten(nexus)
        other = found("nexus", slug="other")
        assert call(other, action="list")["result"]["tightened"] == []


class TestTheWayUp:
    """Spec: escalation 2: no restriction leaves a worker without it."""

    @pytest.mark.parametrize("agent", ["frontend_worker", "research_worker"])
    def test_is_not_taken_from_who_has_send_mail_alone(self, nexus, agent):
        by = "it_manager" if agent == "frontend_worker" else "product_manager"
        if by == "product_manager":
            it = Agent.objects.get(handle="it_manager")
            Agent.objects.get(handle=agent).co_managers.add(it)
            by = "it_manager"
        answer = call(
            nexus, by, action="tighten", agent=agent, tool="send_mail", modes=[], reason="because"
        )
        assert answer["error_code"] == "INVALID_PARAMS"
        assert "would break `way up`" in answer["message"]
        assert not ToolOverride.objects.exists()

    def test_is_not_taken_in_two_steps(self, nexus):
        assert tighten(nexus, tool="escalate")["ok"]
        answer = tighten(nexus, tool="send_mail")
        assert "would break `way up`" in answer["message"]
        assert outcome(
            nexus, "backend_worker", "send_mail",
            to="it_manager", type="escalation", subject="s", body="b",
        ) == "OK"  # fmt: skip

    def test_is_not_left_in_one_mode_alone(self, nexus):
        assert tighten(nexus, tool="escalate")["ok"]
        answer = tighten(nexus, tool="send_mail", modes=["chat_safe"])
        assert answer["ok"] is False

    def test_is_not_taken_while_the_superior_is_deactivated(self, nexus):
        """Spec: escalation 7: its try tells the next above that it needs a superior."""
        Agent.objects.filter(handle="product_manager").update(active=False)
        it = Agent.objects.get(handle="it_manager")
        Agent.objects.get(handle="research_worker").co_managers.add(it)
        answer = tighten(nexus, agent="research_worker")
        assert "would break `way up`" in answer["message"]
