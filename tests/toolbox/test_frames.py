"""Delegation from call to result: stacks, isolation, tools, endings, and many at once."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.actions import Action
from core.decision import Code, Denied
from core.events import Event as LedgerEvent
from ledger.models import Event
from orgchart.models import Agent, Group
from orgchart.policy_cache import POLICIES
from orgchart.services import change_policy
from tests.company import Company, load_company
from tests.concurrency import at_once
from tests.oracle import delegation
from toolbox.authentication import authenticate
from toolbox.frames import ending, rules, services
from toolbox.frames.stack import lock_top, save_frame
from toolbox.frames.vocabulary import FrameState
from toolbox.models import Frame, Session

LEADER, OTHER = "coding_leader", "investment_leader"
DEVELOPER, ARCHITECT = "coding_developer", "coding_architect"


@pytest.fixture
def company(db):
    return load_company("soloqueue")


@pytest.fixture
def committed(transactional_db):
    return load_company("soloqueue")


def delegate(company: Company, source: str, to: str, instruction: str = "do it", **more) -> str:
    return company.call(source, "delegate_to", to=to, instruction=instruction, **more).result[
        "frame_id"
    ]


def take(company: Company, handle: str, **params):
    return company.call(handle, "next_frame", **params).result["frame"]


def give(company: Company, handle: str, frame_id: str, result="done", **more):
    return company.call(handle, "return_result", frame_id=frame_id, result=result, **more)


def restricted(company: Company, handle: str, *tools: str, name: str = "skill__x") -> Frame:
    return services.enter_skill(
        caller=company.caller(handle), name=name, prompt="p", tools=tools, now=timezone.now()
    )


def another_session(company: Company, handle: str) -> dict[str, str]:
    """The header of a new session."""
    return {"X-Nexus-Session": company.post("/api/v1/sessions", {}, handle).body["id"]}


def kinds(handle: str) -> list[str]:
    agent = Agent.objects.get(handle=handle)
    rows = Event.objects.filter(for_agent_id=agent.id, kind="frame").order_by("seq")
    return [row.action for row in rows]


class TestDelegateTo:
    def test_fills_no_queue(self, company, monkeypatch):
        """Spec: frames 16."""
        monkeypatch.setattr(rules, "MOST_WAITING", 2)
        delegate(company, LEADER, DEVELOPER)
        delegate(company, LEADER, DEVELOPER)
        refused = company.call(LEADER, "delegate_to", to=DEVELOPER, instruction="do it")
        assert (refused.status, refused.code) == (429, Code.QUOTA_EXCEEDED)
        assert Frame.objects.count() == 2
        delegate(company, LEADER, ARCHITECT)
        take(company, DEVELOPER)
        delegate(company, LEADER, DEVELOPER)

    @pytest.mark.parametrize("source", delegation.ADDRESSES)
    def test_answers_every_pair_as_specified(self, company, source):
        for target in delegation.ADDRESSES:
            answer = company.call(
                delegation.HANDLES[source], "delegate_to", to=target, instruction="work"
            )
            if delegation.expected(source, target):
                assert answer.result["frame_id"]
            else:
                assert (answer.status, answer.code) == (403, "CONTACT_DENIED")
                assert answer.body["next_action"]

    def test_leaves_one_event_for_the_assignee_and_none_of_the_text(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER, "the secret plan", context={"k": "v"})
        event = Event.objects.get(action="frame.opened")
        assert event.for_agent_id == company.agent(DEVELOPER).id
        assert event.kind == "frame"
        assert event.subject == f"frame:{frame_id}"
        assert "secret" not in str(event.details)

    @pytest.mark.parametrize(
        ("to", "code"),
        [
            ("nobody", "RECIPIENT_UNKNOWN"),
            ("CODING.DEVELOPER", "RECIPIENT_UNKNOWN"),
            ("coding.developer\n", "RECIPIENT_UNKNOWN"),
            ("сoding.developer", "RECIPIENT_UNKNOWN"),
            (["coding.developer"], "INVALID_PARAMS"),
            ("", "INVALID_PARAMS"),
        ],
    )
    def test_refuses_who_is_nobody(self, company, to, code):
        answer = company.call(LEADER, "delegate_to", to=to, instruction="work")
        assert answer.code == code
        assert not Frame.objects.exists()
        assert Event.objects.filter(action="tool.denied").count() == 1

    def test_refuses_who_is_deactivated(self, company):
        Agent.objects.filter(handle=DEVELOPER).update(active=False)
        POLICIES.clear()
        answer = company.call(LEADER, "delegate_to", to=DEVELOPER, instruction="work")
        assert answer.code == "RECIPIENT_INACTIVE"

    def test_follows_the_groups_own_word(self, company):
        refused = company.call(ARCHITECT, "delegate_to", to=DEVELOPER, instruction="x")
        assert refused.code == "CONTACT_DENIED"
        change_policy(
            organisation_id=company.organisation.id,
            apply=lambda row: (
                Group.objects.filter(slug="coding").update(member_delegation=True) and None
            ),
            caller=company.system,
            action="group.changed",
            now=timezone.now(),
        )
        assert delegate(company, ARCHITECT, DEVELOPER)

    def test_ignores_a_forged_sender(self, company):
        answer = company.call(
            DEVELOPER, "delegate_to", to=ARCHITECT, instruction="x", from_="coding_leader"
        )
        assert answer.code == "CONTACT_DENIED"

    def test_explains_without_doing(self, company):
        body = {"tool": "delegate_to", "params": {"to": DEVELOPER, "instruction": "x"}}
        found = company.post("/api/v1/explain", body, LEADER).body
        assert found["allowed"]
        assert found["rule"] == "leader to its member (spec: groups 5)"
        assert not Frame.objects.exists()

    def test_refuses_a_context_that_is_too_large(self, company):
        answer = company.call(
            LEADER, "delegate_to", to=DEVELOPER, instruction="x", context="x" * 200_001
        )
        assert answer.code == "TOO_LARGE"


class TestNextFrame:
    def test_gives_the_oldest_first_and_then_nothing(self, company):
        first, second = (delegate(company, LEADER, DEVELOPER, text) for text in "ab")
        assert take(company, DEVELOPER)["frame_id"] == first
        give(company, DEVELOPER, first)
        assert take(company, DEVELOPER)["frame_id"] == second
        give(company, DEVELOPER, second)
        assert take(company, DEVELOPER) is None

    def test_shows_the_frame_again_to_who_forgot_it(self, company):
        first = delegate(company, LEADER, DEVELOPER)
        delegate(company, LEADER, DEVELOPER)
        assert [take(company, DEVELOPER)["frame_id"] for _ in range(3)] == [first] * 3

    def test_gives_nobody_the_frames_of_another(self, company):
        delegate(company, LEADER, DEVELOPER)
        assert take(company, ARCHITECT) is None
        assert take(company, LEADER) is None

    def test_shows_instruction_and_context_as_they_were_given(self, company):
        context = {"文件": ["a", 1, None, {"x": True}]}
        delegate(company, LEADER, DEVELOPER, "写代码", context=context)
        frame = take(company, DEVELOPER)
        assert frame["instruction"] == "写代码"
        assert frame["context"] == context
        assert frame["from"] == "coding.leader"
        assert frame["depth"] == 1
        assert frame["allowed_tools"] is None

    def test_tells_the_opener_that_it_was_taken(self, company):
        delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        assert kinds(LEADER) == ["frame.taken"]
        assert kinds(DEVELOPER) == ["frame.opened"]

    def test_does_not_give_what_is_over_time(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        Frame.objects.filter(id=frame_id).update(due_at=timezone.now() - timedelta(seconds=1))
        assert take(company, DEVELOPER) is None

    def test_reads_a_result_for_its_opener_only(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        assert take(company, LEADER, frame_id=frame_id) is None
        take(company, DEVELOPER)
        give(company, DEVELOPER, frame_id, {"answer": 42})
        listed = company.call(LEADER, "next_frame").result
        assert listed == {"frame": None, "returned": [frame_id]}
        outcome = take(company, LEADER, frame_id=frame_id)
        assert outcome["result"] == {"answer": 42}
        assert outcome["state"] == "returned"
        assert outcome["to"] == "coding.developer"
        assert company.call(LEADER, "next_frame").result["returned"] == []
        assert take(company, LEADER, frame_id=frame_id)["result"] == {"answer": 42}
        for stranger in (DEVELOPER, ARCHITECT, OTHER):
            answer = company.call(stranger, "next_frame", frame_id=frame_id)
            assert answer.code == "NOT_FOUND"

    @pytest.mark.parametrize("frame_id", ["0", "-1", "9" * 18, "x", "１", "1 ", "1e3"])
    def test_knows_no_other_frame(self, company, frame_id):
        assert company.call(LEADER, "next_frame", frame_id=frame_id).code == "NOT_FOUND"


class TestReturnResult:
    def test_ends_the_frame_and_tells_the_opener(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        answer = give(company, DEVELOPER, frame_id)
        assert answer.result == {"frame_id": frame_id, "state": "returned"}
        assert kinds(LEADER) == ["frame.taken", "frame.returned"]
        assert company.caller(DEVELOPER).frame_id is None

    def test_may_return_a_failure(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        assert give(company, DEVELOPER, frame_id, status="failed").result["state"] == "failed"
        assert kinds(LEADER)[-1] == "frame.failed"

    def test_ends_a_frame_once(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        give(company, DEVELOPER, frame_id, "first")
        assert give(company, DEVELOPER, frame_id, "second").code == "INVALID_TRANSITION"
        assert Frame.objects.get(id=frame_id).result == "first"

    def test_is_refused_before_it_was_taken(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        assert give(company, DEVELOPER, frame_id).code == "INVALID_TRANSITION"

    def test_is_for_the_assignee_alone(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        for stranger in (LEADER, ARCHITECT, OTHER):
            assert give(company, stranger, frame_id).code == "NOT_FOUND"
        assert Frame.objects.get(id=frame_id).state == FrameState.TAKEN

    def test_is_of_the_agent_from_every_session(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        answer = company.call(
            DEVELOPER,
            "return_result",
            another_session(company, DEVELOPER),
            frame_id=frame_id,
            result="x",
        )
        assert answer.result == {"frame_id": frame_id, "state": "returned"}

    def test_without_an_id_is_of_the_frame_the_agent_is_in(self, company):
        outer = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        inner = str(restricted(company, DEVELOPER, "current_time").id)
        for frame_id in (inner, outer):
            answer = company.call(DEVELOPER, "return_result", result="x")
            assert answer.result == {"frame_id": frame_id, "state": "returned"}
        assert company.call(DEVELOPER, "return_result", result="x").code == "INVALID_TRANSITION"

    def test_cancels_what_it_delegated_and_nobody_finished(self, company):
        outer = delegate(company, OTHER, "coding.leader")
        take(company, LEADER)
        inner = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        give(company, LEADER, outer)
        assert Frame.objects.get(id=inner).state == FrameState.CANCELLED
        assert company.caller(DEVELOPER).frame_id is None
        assert kinds(DEVELOPER)[-1] == "frame.cancelled"
        assert give(company, DEVELOPER, inner).code == "INVALID_TRANSITION"

    def test_reads_no_context_of_what_it_cancels(self, company):
        """What one agent delegated and others did not finish may take more than the memory has."""
        outer = delegate(company, OTHER, "coding.leader")
        take(company, LEADER)
        inner = delegate(company, LEADER, DEVELOPER, context="data")
        with CaptureQueriesContext(connection) as queries:
            give(company, LEADER, outer)
        above = [one["sql"] for one in queries if '"parent_id" IN' in one["sql"]]
        assert inner in above[-1]
        assert not any('"context"' in one for one in above)

    def test_answers_the_same_for_another_organisations_frame(self, company):
        there = load_company("dev-team")
        Agent.objects.filter(handle="team-lead").update(skills=["plan"])
        POLICIES.clear()
        frame_id = delegate(company, LEADER, DEVELOPER)
        theirs = there.call("team-lead", "return_result", frame_id=frame_id, result="x")
        nothing = there.call("team-lead", "return_result", frame_id="999999", result="x")
        assert theirs == nothing
        assert theirs.code == "NOT_FOUND"


class TestStack:
    def test_grows_and_shows_nothing_of_the_frame_below(self, company):
        delegate(company, OTHER, "coding.leader", "outer words", context="outer data")
        take(company, LEADER)
        inner = delegate(company, LEADER, DEVELOPER, "inner words")
        frame = take(company, DEVELOPER)
        assert frame["depth"] == 2
        assert "outer" not in str(frame)
        assert Frame.objects.get(id=inner).parent.instruction == "outer words"

    def test_keeps_results_in_the_frame_that_asked(self, company):
        before = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        give(company, DEVELOPER, before)
        outer = delegate(company, OTHER, "coding.leader")
        entered = company.call(LEADER, "next_frame").result
        assert entered["returned"] == []
        assert company.call(LEADER, "next_frame", frame_id=before).code == "NOT_FOUND"
        give(company, LEADER, outer)
        assert take(company, LEADER, frame_id=before)["result"] == "done"

    def test_refuses_a_circle(self, company):
        delegate(company, OTHER, "coding.leader")
        take(company, LEADER)
        answer = company.call(LEADER, "delegate_to", to="investment.leader", instruction="back")
        assert (answer.status, answer.code) == (409, "DELEGATION_CIRCLE")
        assert "waits" in answer.body["message"]

    def test_refuses_a_circle_from_every_session(self, company):
        before = another_session(company, LEADER)
        delegate(company, OTHER, "coding.leader")
        frame_id = take(company, LEADER)["frame_id"]
        for headers in (before, another_session(company, LEADER)):
            answer = company.call(
                LEADER, "delegate_to", headers, to="investment.leader", instruction="back"
            )
            assert answer.code == "DELEGATION_CIRCLE"
            assert company.get("/api/v1/me", LEADER, headers).body["frame"] == frame_id

    def test_counts_the_depth_in_every_session(self, company):
        for depth in range(1, 9):
            restricted(company, LEADER, "delegate_to", name=f"skill__{depth}")
        headers = another_session(company, LEADER)
        answer = company.call(LEADER, "delegate_to", headers, to=DEVELOPER, instruction="deeper")
        assert answer.code == "INVALID_TRANSITION"

    def test_shows_every_session_the_frame_on_top(self, company):
        delegate(company, LEADER, DEVELOPER)
        outer = take(company, DEVELOPER)["frame_id"]
        delegate(company, LEADER, DEVELOPER, "later")
        inner = str(restricted(company, DEVELOPER, "next_frame").id)
        headers = another_session(company, DEVELOPER)
        for top in (inner, outer):
            assert company.get("/api/v1/me", DEVELOPER, headers).body["frame"] == top
            answer = company.call(DEVELOPER, "next_frame", headers)
            assert answer.result["frame"]["frame_id"] == top
            company.call(DEVELOPER, "return_result", headers, result="x")
        assert company.get("/api/v1/me", DEVELOPER, headers).body["frame"] is None

    def test_is_never_due_later_than_the_frame_below(self, company):
        outer = delegate(company, OTHER, "coding.leader")
        due = timezone.now() + timedelta(seconds=60)
        Frame.objects.filter(id=outer).update(due_at=due)
        take(company, LEADER)
        inner = delegate(company, LEADER, DEVELOPER)
        assert Frame.objects.get(id=inner).due_at == due

    def test_ends_at_eight(self, company):
        for depth in range(1, 9):
            frame = restricted(company, LEADER, "delegate_to", name=f"skill__{depth}")
            assert frame.depth == depth
        answer = company.call(LEADER, "delegate_to", to=DEVELOPER, instruction="deeper")
        assert answer.code == "INVALID_TRANSITION"
        with pytest.raises(Denied, match="8 frames"):
            restricted(company, LEADER, "delegate_to", name="skill__9")


class TestTools:
    def test_are_those_of_the_frame_and_the_way_out(self, company):
        frame = restricted(company, LEADER, "current_time", "memory_search")
        assert company.call(LEADER, "current_time").status == 200
        assert company.call(LEADER, "delegate_to", to=DEVELOPER, instruction="x").code == (
            "TOOL_DENIED"
        )
        listed = {t["name"] for t in company.get("/api/v1/tools", LEADER).body["tools"]}
        assert "return_result" in listed
        assert listed <= {"current_time", "memory_search", "return_result"}
        give(company, LEADER, str(frame.id))
        assert delegate(company, LEADER, DEVELOPER)

    def test_shrink_down_the_stack_and_never_grow(self, company):
        restricted(company, LEADER, "delegate_to", "current_time")
        delegate(company, LEADER, DEVELOPER)
        frame = take(company, DEVELOPER)
        assert frame["allowed_tools"] == ["current_time", "delegate_to"]
        assert company.call(DEVELOPER, "next_frame").code == "TOOL_DENIED"
        assert company.call(DEVELOPER, "current_time").status == 200
        inner = restricted(company, DEVELOPER, "next_frame", "current_time", name="skill__y")
        assert inner.allowed_tools == ["current_time"]

    def test_a_restricted_frame_is_no_door_to_a_freer_one(self, company):
        restricted(company, LEADER, "next_frame")
        waiting = delegate(company, OTHER, "coding.leader")
        assert take(company, LEADER)["name"] == "skill__x"
        assert Frame.objects.get(id=waiting).state == FrameState.OPEN

    def test_hold_for_all_sessions_of_the_agent(self, company):
        before = another_session(company, LEADER)
        restricted(company, LEADER, "current_time")
        for headers in (before, another_session(company, LEADER), None):
            assert company.call(LEADER, "current_time", headers).status == 200
            answer = company.call(LEADER, "delegate_to", headers, to=DEVELOPER, instruction="x")
            assert answer.code == "TOOL_DENIED"

    def test_are_the_way_out_alone_in_a_frame_that_names_none(self, company):
        restricted(company, LEADER)
        listed = {t["name"] for t in company.get("/api/v1/tools", LEADER).body["tools"]}
        assert listed == {"return_result"}
        assert company.call(LEADER, "return_result", result="x").status == 200

    def test_come_in_the_one_query_of_the_key(self, company, django_assert_num_queries):
        restricted(company, LEADER, "current_time")
        key = company.key(LEADER)
        company.caller(LEADER)
        with django_assert_num_queries(1):
            caller = authenticate(authorization=f"Bearer {key}", session_id=None, request_id="")
        assert caller.frame_tools == {"current_time"}


class TestPrompt:
    def prompt(self, company, handle):
        return company.get("/api/v1/prompt", handle).body["prompt"]

    def test_holds_the_work_of_the_frame(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER, "write the parser", context={"k": "v"})
        assert "write the parser" not in self.prompt(company, DEVELOPER)
        take(company, DEVELOPER)
        text = self.prompt(company, DEVELOPER)
        assert "write the parser" in text
        assert '{"k": "v"}' in text
        assert "coding.leader" in text
        assert company.get("/api/v1/me", DEVELOPER).body["frame"] == frame_id

    def test_is_the_skill_alone_inside_a_skill(self, company):
        outside = self.prompt(company, LEADER)
        restricted(company, LEADER, "current_time")
        inside = self.prompt(company, LEADER)
        assert inside.startswith("# You are skill__x, started by coding_leader\np\n")
        assert "You lead the coding group" in outside
        assert "You lead the coding group" not in inside
        assert "- current_time:" in inside
        assert "- delegate_to:" not in inside


class TestCancel:
    def test_takes_everything_above_with_it(self, company):
        outer = delegate(company, OTHER, "coding.leader")
        take(company, LEADER)
        inner = delegate(company, LEADER, DEVELOPER)
        waiting = delegate(company, LEADER, ARCHITECT)
        take(company, DEVELOPER)
        ending.cancel_frame(
            frame_id=int(outer),
            caller=company.person("Board"),
            reason="no longer",
            now=timezone.now(),
        )
        rows = {str(row.id): row.state for row in Frame.objects.all()}
        assert rows == {
            outer: FrameState.FAILED,
            inner: FrameState.CANCELLED,
            waiting: FrameState.CANCELLED,
        }
        assert not Frame.objects.filter(state=FrameState.TAKEN).exists()
        for handle in (LEADER, DEVELOPER, ARCHITECT):
            assert kinds(handle)[-1] == "frame.cancelled"

    def test_is_a_failure_for_the_opener(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        ending.cancel_frame(
            frame_id=int(frame_id),
            caller=company.person("Board"),
            reason="moot",
            now=timezone.now(),
        )
        assert kinds(LEADER)[-1] == "frame.failed"
        assert company.call(LEADER, "next_frame").result["returned"] == [frame_id]
        outcome = take(company, LEADER, frame_id=frame_id)
        assert (outcome["state"], outcome["reason"]) == ("failed", "moot")
        assert outcome["result"] == {"error": "cancelled", "message": "moot"}

    def test_goes_back_to_where_a_skill_was_entered(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        one = restricted(company, DEVELOPER, "current_time", name="skill__1")
        restricted(company, DEVELOPER, "current_time", name="skill__2")
        ending.cancel_frame(
            frame_id=one.id, caller=company.person("Board"), reason="no", now=timezone.now()
        )
        caller = company.caller(DEVELOPER)
        assert str(caller.frame_id) == frame_id
        assert caller.frame_tools is None

    @pytest.mark.parametrize("reason", ["", "  ", "\n"])
    def test_needs_a_reason(self, company, reason):
        frame_id = delegate(company, LEADER, DEVELOPER)
        with pytest.raises(Denied, match="reason"):
            ending.cancel_frame(
                frame_id=int(frame_id),
                caller=company.person("Board"),
                reason=reason,
                now=timezone.now(),
            )

    def test_is_for_the_own_organisation(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        there = load_company("dev-team")
        with pytest.raises(Denied, match="no such frame"):
            ending.cancel_frame(
                frame_id=int(frame_id), caller=there.person("Board"), reason="x", now=timezone.now()
            )


class TestTimeLimit:
    def test_returns_a_failure_to_the_opener(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        later = timezone.now() + timedelta(hours=2)
        assert ending.end_due_frames(later) == 1
        assert ending.end_due_frames(later) == 0
        outcome = take(company, LEADER, frame_id=frame_id)
        assert outcome["state"] == "failed"
        assert outcome["result"]["error"] == "timeout"
        assert kinds(LEADER)[-1] == "frame.failed"
        assert company.caller(DEVELOPER).frame_id is None
        assert give(company, DEVELOPER, frame_id).code == "INVALID_TRANSITION"

    def test_is_the_organisations_setting(self, company):
        frame = Frame.objects.get(id=delegate(company, LEADER, DEVELOPER))
        assert frame.due_at - frame.opened_at == timedelta(seconds=3600)

    def test_touches_nothing_that_is_not_due(self, company):
        delegate(company, LEADER, DEVELOPER)
        assert ending.end_due_frames(timezone.now()) == 0

    def test_fails_a_stack_from_below_and_cancels_what_is_above(self, company):
        outer = delegate(company, OTHER, "coding.leader")
        take(company, LEADER)
        inner = delegate(company, LEADER, DEVELOPER)
        ending.end_due_frames(timezone.now() + timedelta(hours=2))
        assert Frame.objects.get(id=outer).state == FrameState.FAILED
        assert Frame.objects.get(id=inner).state == FrameState.CANCELLED


def session_callers(company: Company, handle: str, count: int):
    agent = company.agent(handle)
    rows = [
        Session.objects.create(
            organisation=company.organisation, agent=agent, opened_at=timezone.now()
        )
        for _ in range(count)
    ]
    key = company.key(handle)
    return [
        authenticate(authorization=f"Bearer {key}", session_id=str(row.id), request_id="")
        for row in rows
    ]


class TestManyAtOnce:
    def test_one_frame_has_one_taker(self, committed):
        frame_id = delegate(committed, LEADER, DEVELOPER)
        callers = session_callers(committed, DEVELOPER, 6)
        taken = at_once(
            [lambda c=c: services.take_next(caller=c, now=timezone.now()) for c in callers]
        )
        assert {str(frame.id) for frame in taken} == {frame_id}
        assert Event.objects.filter(action="frame.taken").count() == 1

    def test_many_sessions_take_one_of_many_frames(self, committed):
        ids = [delegate(committed, LEADER, DEVELOPER) for _ in range(6)]
        callers = session_callers(committed, DEVELOPER, 6)
        taken = at_once(
            [lambda c=c: services.take_next(caller=c, now=timezone.now()) for c in callers]
        )
        assert {str(frame.id) for frame in taken} == {ids[0]}
        assert Frame.objects.filter(state=FrameState.TAKEN).count() == 1

    def test_a_session_that_takes_closes_the_others_to_a_circle(self, committed):
        for _ in range(4):
            frame_id = delegate(committed, OTHER, "coding.leader")
            one, two = session_callers(committed, LEADER, 2)
            taken, delegated = at_once(
                [
                    lambda c=one: services.take_next(caller=c, now=timezone.now()),
                    lambda c=two: services.delegate_to(
                        caller=c,
                        to="investment.leader",
                        instruction="x",
                        context=None,
                        now=timezone.now(),
                    ),
                ]
            )
            assert str(taken.id) == frame_id
            if delegated is not Code.INVALID_TRANSITION:
                first = Event.objects.get(subject=f"frame:{delegated['frame_id']}")
                second = Event.objects.get(subject=f"frame:{frame_id}", action="frame.taken")
                assert first.seq < second.seq
            give(committed, LEADER, frame_id)
            Frame.objects.filter(opener__handle=LEADER).update(
                state="cancelled", ended_at=timezone.now()
            )

    def test_two_takers_on_one_session_get_the_same(self, committed):
        for _ in range(2):
            delegate(committed, LEADER, DEVELOPER)
        caller = committed.caller(DEVELOPER)
        taken = at_once(
            [lambda: services.take_next(caller=caller, now=timezone.now()) for _ in range(4)]
        )
        assert len({frame.id for frame in taken}) == 1

    def test_a_result_and_a_time_limit_end_a_frame_once(self, committed):
        for _ in range(5):
            frame_id = delegate(committed, LEADER, DEVELOPER)
            take(committed, DEVELOPER)
            caller = committed.caller(DEVELOPER)
            later = timezone.now() + timedelta(hours=2)
            returned, swept = at_once(
                [
                    lambda c=caller, f=frame_id: ending.return_result(
                        caller=c, frame_id=f, result="r", failed=False, now=timezone.now()
                    ),
                    lambda at=later: ending.end_due_frames(at),
                ]
            )
            frame = Frame.objects.get(id=frame_id)
            ends = Event.objects.filter(
                subject=f"frame:{frame_id}", action__in=["frame.returned", "frame.failed"]
            )
            assert ends.count() == 1
            if frame.state == FrameState.RETURNED:
                assert (frame.result, swept) == ("r", 0)
            else:
                assert isinstance(returned, Code)
                assert swept == 1
            assert committed.caller(DEVELOPER).frame_id is None

    def test_three_sweeps_fail_a_frame_once(self, committed):
        for _ in range(3):
            delegate(committed, LEADER, DEVELOPER)
        later = timezone.now() + timedelta(hours=2)
        assert sum(at_once([lambda: ending.end_due_frames(later)] * 3)) == 3
        assert Event.objects.filter(action="frame.failed").count() == 3

    def test_no_child_outlives_a_frame_that_ends_meanwhile(self, committed):
        for _ in range(4):
            outer = delegate(committed, OTHER, "coding.leader")
            take(committed, LEADER)
            caller = committed.caller(LEADER)
            at_once(
                [
                    lambda c=caller: services.delegate_to(
                        caller=c, to=DEVELOPER, instruction="x", context=None, now=timezone.now()
                    ),
                    lambda c=caller, f=outer: ending.return_result(
                        caller=c, frame_id=f, result="r", failed=False, now=timezone.now()
                    ),
                ]
            )
            assert Frame.objects.get(id=outer).state == FrameState.RETURNED
            alive = Frame.objects.filter(parent_id=outer, state__in=["open", "taken"])
            assert not alive.exists()

    def test_two_skills_at_once_are_one_inside_the_other_or_refused(self, committed):
        caller = committed.caller(LEADER)
        found = at_once(
            [
                lambda n=n: services.enter_skill(
                    caller=caller, name=f"skill__{n}", prompt="p", tools=[], now=timezone.now()
                )
                for n in range(3)
            ]
        )
        assert sum(isinstance(frame, Frame) for frame in found) == 1
        assert sum(isinstance(answer, Code) for answer in found) == 2


class TestLockTop:
    def test_refuses_a_frame_that_ended_since_the_key_was_read(self, company):
        delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        caller = company.caller(DEVELOPER)
        ending.end_due_frames(timezone.now() + timedelta(hours=2))
        with pytest.raises(Denied, match="has ended"), transaction.atomic():
            lock_top(caller)


class TestSaveFrame:
    def test_changes_and_records_nothing_at_a_stale_version(self, company):
        frame = Frame.objects.get(id=delegate(company, LEADER, DEVELOPER))
        caller, now = company.caller(DEVELOPER), timezone.now()
        Frame.objects.filter(id=frame.id).update(version=frame.version + 1)
        frame.take(at=now)
        event = LedgerEvent.by(caller, Action.FRAME_TAKEN, at=now, subject=f"frame:{frame.id}")
        with pytest.raises(Denied) as refused, transaction.atomic():
            save_frame(frame, before=FrameState.OPEN, event=event, columns=["taken_at"])
        assert refused.value.deny.code is Code.VERSION_MISMATCH
        assert Frame.objects.get(id=frame.id).state == FrameState.OPEN
        assert not Event.objects.filter(action="frame.taken").exists()

    def test_counts_a_version_for_each_transition(self, company):
        frame_id = delegate(company, LEADER, DEVELOPER)
        take(company, DEVELOPER)
        give(company, DEVELOPER, frame_id)
        assert Frame.objects.get(id=frame_id).version == 3


class TestTable:
    @pytest.mark.parametrize(
        "change",
        [
            {"state": "rubbish"},
            {"depth": 9},
            {"depth": 2},
            {"state": "returned"},
            {"kind": "skill"},
            {"state": "taken"},
        ],
    )
    def test_keeps_what_must_hold(self, company, change):
        frame_id = delegate(company, LEADER, DEVELOPER)
        with pytest.raises(Exception, match="frame_"), connection.cursor():
            Frame.objects.filter(id=frame_id).update(**change)
