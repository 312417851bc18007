"""A paused agent: every tool on every face, what stays, who is faster, and how it goes on."""

import asyncio
import json
import threading
import time
from datetime import timedelta
from functools import partial

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.decision import Code, Denied
from governance.models import Intervention
from ledger.models import Event
from mailroom.escalations.timeouts import sweep_due
from mailroom.models import Escalation, Mail
from orgchart.models import Agent, ApiKey, Pause
from orgchart.pauses.services import (
    pause_agent,
    pause_of,
    resume_agent,
    resume_everything,
    stop_everything,
    take_over_pause,
)
from orgchart.services import set_settings
from tasks import schedule
from tasks.models import Task
from tasks.schedule import release_overdue
from tests.clients.listening import connected
from tests.company import load_company
from tests.concurrency import at_once
from tests.contracts.world import accept, issue
from tests.patience import PATIENCE, wait_until
from tests.server import serving
from toolbox import wake
from toolbox.faces.long_poll import LONGEST
from toolbox.frames.ending import end_due_frames
from toolbox.models import Frame, ModeGrant, Session
from toolbox.registry import REGISTRY

WORKER, REASON = "backend_worker", "It repeats itself."
TOOLS = [*(tool.name for tool in REGISTRY.all()), "no_such_tool"]


@pytest.fixture
def company(db, settings):
    settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 10**6
    return load_company("nexus")


@pytest.fixture
def committed(transactional_db, settings):
    settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 10**6
    return load_company("nexus")


def board(company, username="alice"):
    return company.person("Board", username=username)


def pause(company, agent=WORKER, *, by=None, reason=REASON):
    return pause_agent(person=by or board(company), agent=agent, reason=reason, now=timezone.now())


def resume(company, agent=WORKER, *, by=None, seen=None, reason="It is mended."):
    resume_agent(
        person=by or board(company), agent=agent, reason=reason, expected_pause=seen,
        now=timezone.now(),
    )  # fmt: skip


def stop(company, *, by=None, reason="Everything stops."):
    return stop_everything(person=by or board(company), reason=reason, now=timezone.now())


def restart(company, *, by=None, seen=None):
    resume_everything(
        person=by or board(company), reason="It goes on.", expected_pause=seen, now=timezone.now()
    )


def rpc(company, agent, method, **params):
    answer = company.http.post(
        "/mcp",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {company.key(agent)}"},
    )
    return answer.json()


class TestEveryCall:
    @pytest.mark.parametrize("name", TOOLS)
    def test_is_refused_before_anything_else_over_rest(self, company, name):
        pause(company)
        for params in ({}, {"no_such_field": 1}):
            answer = company.call(WORKER, name, **params)
            assert (answer.status, answer.code) == (403, "AGENT_PAUSED")
            assert REASON in answer.body["message"]
            assert "a member of Board resumes you" in answer.body["next_action"]
            assert answer.body["details"]["resumed_by"] == ["Board"]
            assert answer.body["details"]["scope"] == "agent"

    def test_is_refused_with_a_body_that_cannot_be_read(self, company):
        pause(company)
        answer = company.http.post(
            "/api/v1/tools/read_inbox", "{", content_type="application/json",
            headers={"Authorization": f"Bearer {company.key(WORKER)}"},
        )  # fmt: skip
        assert (answer.status_code, answer.json()["error_code"]) == (403, "AGENT_PAUSED")

    def test_is_refused_where_its_answer_is_kept_and_given_again_after_it(self, company):
        key = {"Idempotency-Key": "one"}
        mail = {"to": "it_manager", "type": "info", "subject": "S", "body": "B"}
        first = company.call(WORKER, "send_mail", headers=key, **mail)
        pause(company)
        assert company.call(WORKER, "send_mail", headers=key, **mail).code == "AGENT_PAUSED"
        new = {"Idempotency-Key": "two"}
        assert company.call(WORKER, "send_mail", headers=new, **mail).code == "AGENT_PAUSED"
        resume(company)
        assert company.call(WORKER, "send_mail", headers=key, **mail).body == first.body
        assert company.call(WORKER, "send_mail", headers=new, **mail).code == "OK"
        assert Mail.objects.filter(from_agent=WORKER).count() == 2

    def test_leaves_one_event(self, company):
        pause(company)
        company.call(WORKER, "read_inbox")
        event = Event.objects.get(action="tool.denied")
        assert (event.actor, event.code, event.tool) == (
            f"agent:{WORKER}", "AGENT_PAUSED", "read_inbox",
        )  # fmt: skip

    def test_of_sessions_is_refused_as_well(self, company):
        session = company.get("/api/v1/me", WORKER).body["session"]["id"]
        pause(company)
        assert company.post("/api/v1/sessions", {}, WORKER).code == "AGENT_PAUSED"
        assert company.get(f"/api/v1/sessions/{session}", WORKER).code == "AGENT_PAUSED"

    def test_of_others_is_answered_as_before(self, company):
        pause(company)
        assert company.call("frontend_worker", "read_inbox").code == "OK"
        sent = company.call(
            "it_manager", "send_mail", to=WORKER, type="info", subject="S", body="B"
        )
        assert sent.code == "OK"


class TestWhatItCanRead:
    @pytest.mark.parametrize(("group", "able"), [("Board", ["Board"]), ("HR", ["Board", "HR"])])
    def test_names_the_groups_that_can_resume_it(self, company, group, able):
        """Spec: people 39, modes 27."""
        pause(company, by=company.person(group))
        assert company.get("/api/v1/me", WORKER).body["paused"]["resumed_by"] == able
        answer = company.call(WORKER, "read_inbox")
        assert answer.body["details"]["resumed_by"] == able
        assert f"a member of {' or '.join(able)} resumes you" in answer.body["next_action"]

    def test_says_that_it_is_paused(self, company):
        assert company.get("/api/v1/me", WORKER).body["paused"] is None
        pause(company)
        paused = company.get("/api/v1/me", WORKER).body["paused"]
        assert paused["reason"] == REASON
        assert (paused["scope"], paused["resumed_by"]) == ("agent", ["Board"])
        prompt = company.get("/api/v1/prompt", WORKER).body["prompt"]
        assert "# You are paused" in prompt
        assert REASON in prompt
        assert "send_mail" not in prompt
        assert company.get("/api/v1/tools", WORKER).body["tools"] == []
        told = company.post("/api/v1/explain", {"tool": "read_inbox", "params": {}}, WORKER).body
        assert (told["allowed"], told["error_code"]) == (False, "AGENT_PAUSED")

    def test_is_as_before_after_the_pause(self, company):
        paths = ("/api/v1/me", "/api/v1/prompt", "/api/v1/tools")
        before = [company.get(path, WORKER).body for path in paths]
        pause(company)
        resume(company)
        assert [company.get(path, WORKER).body for path in paths] == before


class TestAPause:
    def test_costs_no_query_more(self, company, django_assert_num_queries):
        from toolbox.authentication import authenticate

        company.get("/api/v1/me", WORKER)
        pause(company)
        with django_assert_num_queries(1):
            caller = authenticate(
                authorization=f"Bearer {company.key(WORKER)}", session_id=None, request_id=""
            )
        assert caller.pause is not None

    def test_leaves_keys_work_mail_and_mode_as_they_are(self, company):
        contract_id = issue(company, coding=True)
        accept(company, contract_id)
        company.call("it_manager", "send_mail", to=WORKER, type="info", subject="S", body="B")

        def kept():
            return [
                list(model.objects.order_by("pk").values())
                for model in (ApiKey, Session, ModeGrant, Mail, Agent)
            ]

        before = kept()
        pause(company)
        assert kept() == before
        resume(company)
        assert kept() == before
        assert company.get("/api/v1/me", WORKER).body["session"]["mode"] == "coding"
        assert company.call(WORKER, "submit_report", contract_id=contract_id,
                            kind="completion", title="T", body="B").code == "OK"  # fmt: skip

    def test_is_an_intervention_in_both_directions(self, company):
        pause(company)
        resume(company, by=board(company, "bob"))
        last, first = Intervention.objects.all()
        assert (first.operator, first.action_taken, first.reason) == (
            "alice", "pause_agent", REASON,
        )  # fmt: skip
        assert (last.operator, last.action_taken) == ("bob", "resume_agent")
        assert last.trigger_condition == f"paused: {REASON}"
        assert first.subject == last.subject == f"agent:{WORKER}"
        actions = Event.objects.filter(subject=f"agent:{WORKER}").values_list("action", flat=True)
        assert {"agent.paused", "agent.resumed"} <= set(actions)

    @pytest.mark.parametrize(
        ("act", "code"),
        [
            (lambda c: pause(c, reason=" "), Code.INVALID_PARAMS),
            (lambda c: pause(c, "nobody"), Code.NOT_FOUND),
            (lambda c: pause(c, by=c.person("Observer")), Code.NOT_YOURS),
            (lambda c: stop(c, by=c.person("HR")), Code.NOT_YOURS),
            (lambda c: stop(c, reason=""), Code.INVALID_PARAMS),
            (resume, Code.INVALID_TRANSITION),
            (restart, Code.INVALID_TRANSITION),
            (lambda c: [pause(c), pause(c)], Code.INVALID_TRANSITION),
            (lambda c: [pause(c), resume(c, reason="")], Code.INVALID_PARAMS),
            (lambda c: [stop(c), stop(c)], Code.INVALID_TRANSITION),
            (lambda c: [stop(c), resume(c)], Code.INVALID_TRANSITION),
        ],
    )
    def test_is_refused_where_it_makes_no_sense(self, company, act, code):
        with pytest.raises(Denied) as refusal:
            act(company)
        assert refusal.value.deny.code is code

    def test_that_was_seen_is_the_one_that_ends(self, company):
        seen = pause(company).id
        resume(company)
        pause(company, reason="Again.")
        with pytest.raises(Denied) as refusal:
            resume(company, seen=seen)
        assert refusal.value.deny.code is Code.VERSION_MISMATCH
        assert company.call(WORKER, "read_inbox").code == "AGENT_PAUSED"


class TestStopEverything:
    def test_stops_every_agent_and_resumes_those_that_were_not_paused(self, company):
        pause(company)
        stop(company)
        for handle in company.policy.agents:
            answer = company.call(handle, "read_inbox")
            assert answer.code == "AGENT_PAUSED"
            assert answer.body["details"]["scope"] == "organisation"
            assert answer.body["details"]["resumed_by"] == ["Board"]
        restart(company)
        for handle in company.policy.agents:
            expected = "AGENT_PAUSED" if handle == WORKER else "OK"
            assert company.call(handle, "read_inbox").code == expected

    def test_leaves_other_organisations_alone(self, company):
        other = load_company("constitution")
        stop(company)
        assert other.call("analyst", "case_list").code == "OK"

    def test_holds_over_an_agent_of_its_own(self, company):
        worker, organisation = company.agent(WORKER), company.organisation.id
        pause(company)
        stop(company)
        assert pause_of(organisation_id=organisation, agent_id=worker.id).is_everyone


class TestClaims:
    LEASE = 60

    @pytest.fixture
    def claimed(self, company):
        """The begin of a claim of the worker that is a lease."""
        now = timezone.now()
        lease = {"task_lease": self.LEASE}
        organisation = company.organisation
        set_settings(organisation=organisation, values=lease, caller=company.system, now=now)
        made = company.call(WORKER, "task_create", subject="Work").result["id"]
        company.call(WORKER, "task_update", taskId=made, owner=WORKER, status="in_progress")
        return now

    @pytest.mark.parametrize("everyone", [True, False])
    def test_do_not_expire_and_have_a_new_lease_after_it(self, company, claimed, everyone):
        def owner_at(seconds):
            release_overdue(claimed + timedelta(seconds=seconds))
            return Task.objects.get().owner

        stop(company) if everyone else pause(company)
        assert owner_at(100).handle == WORKER
        assert owner_at(300).handle == WORKER
        resumed = {"reason": "On.", "expected_pause": None}
        at = claimed + timedelta(seconds=301)
        if everyone:
            resume_everything(person=board(company), **resumed, now=at)
        else:
            resume_agent(person=board(company), agent=WORKER, **resumed, now=at)
        assert owner_at(301 + self.LEASE - 1).handle == WORKER
        assert Task.objects.get().lease_due_at == at + timedelta(seconds=self.LEASE)
        assert owner_at(301 + self.LEASE) is None

    def test_are_read_once_in_a_lease_while_their_agents_stand_still(self, company, claimed):
        stop(company)
        later = claimed + timedelta(seconds=100)
        assert release_overdue(later) == 1
        assert Task.objects.get().lease_due_at == later + timedelta(seconds=self.LEASE)
        assert release_overdue(later + timedelta(seconds=self.LEASE - 1)) == 0
        assert Task.objects.get().owner.handle == WORKER

    def test_of_one_agent_get_another_time_together(self, company, claimed, monkeypatch):
        monkeypatch.setattr(schedule, "BATCH", 1)
        again = company.call(WORKER, "task_create", subject="More work").result["id"]
        company.call(WORKER, "task_update", taskId=again, owner=WORKER, status="in_progress")
        stop(company)
        later = timezone.now() + timedelta(seconds=100)
        assert release_overdue(later) == 1  # one statement for thousands
        due = later + timedelta(seconds=self.LEASE)
        assert {task.lease_due_at for task in Task.objects.all()} == {due}

    def test_are_not_written_while_a_person_resumes_their_agents(self, company, claimed):
        """There may be a million, and a statement of a page ends after a minute (clocks 19)."""
        stop(company)
        with CaptureQueriesContext(connection) as done:
            resume_everything(
                person=board(company), reason="On.", expected_pause=None, now=timezone.now()
            )
        assert not [each["sql"] for each in done if "tasks_task" in each["sql"]]

    def test_expire_without_leases_at_no_time(self, company, claimed):
        from orgchart.services import set_settings

        stop(company)
        set_settings(
            organisation=company.organisation, values={"task_lease": 0}, caller=company.system,
            now=claimed,
        )  # fmt: skip
        release_overdue(claimed + timedelta(seconds=100))
        assert Task.objects.get().lease_due_at is None


class TestEscalations:
    @pytest.mark.parametrize("everyone", [True, False])
    def test_are_unanswered_after_their_time_as_any_other(self, company, everyone):
        asked = company.call(WORKER, "escalate", subject="Help", body="Look").result
        stop(company) if everyone else pause(company, asked["to"])
        assert sweep_due(now=timezone.now() + timedelta(days=1)) >= 1
        assert Escalation.objects.get().state == "unanswered"


class TestFrames:
    @pytest.mark.parametrize("is_taken", [True, False])
    @pytest.mark.parametrize("everyone", [True, False])
    def test_do_not_time_out_and_begin_their_time_anew(self, db, is_taken, everyone):
        company = load_company("soloqueue")
        leader, member = "coding_leader", "coding_developer"
        company.key(member)
        asked = company.call(leader, "delegate_to", to=member, instruction="Look")
        if is_taken:
            company.call(member, "next_frame")
        stop(company) if everyone else pause(company, member)
        later = timezone.now() + timedelta(hours=2)
        assert end_due_frames(later) == 0
        how = {"person": board(company), "reason": "On.", "expected_pause": None, "now": later}
        resume_everything(**how) if everyone else resume_agent(agent=member, **how)
        frame = Frame.objects.get(id=asked.result["frame_id"])
        assert (frame.state, frame.due_at) == (
            "taken" if is_taken else "open", later + timedelta(hours=1),
        )  # fmt: skip
        assert end_due_frames(later + timedelta(minutes=59)) == 0
        assert end_due_frames(later + timedelta(hours=1)) == 1

    def test_are_as_many_as_an_organisation_has(self, db):
        """A statement has 65,535 parameters at most, and an organisation may have more frames."""
        company = load_company("soloqueue")
        company.call("coding_leader", "delegate_to", to="coding_developer", instruction="Look")
        like = (
            "organisation_id, kind, name, opener_id, assignee_id, depth, instruction, state, "
            "version, reason, opened_at, due_at"
        )
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO toolbox_frame ({like}) SELECT {like} FROM toolbox_frame, "
                "generate_series(1, 65535)"
            )
        stop(company)
        later = timezone.now() + timedelta(hours=2)
        resume_everything(person=board(company), reason="On.", expected_pause=None, now=later)
        assert not Frame.objects.filter(due_at__lte=later).exists()

    def test_of_others_keep_their_time(self, db):
        company = load_company("soloqueue")
        for handle in ("coding_developer", "coding_architect"):
            company.key(handle)
            company.call("coding_leader", "delegate_to", to=handle, instruction="Look")
        pause(company, "coding_developer")
        later = timezone.now() + timedelta(hours=2)
        assert end_due_frames(later) == 1
        assert Frame.objects.get(state="failed").assignee.handle == "coding_architect"

    def test_end_with_the_frame_below_all_the_same(self, db):
        company = load_company("soloqueue")
        for opener, to in (("investment_leader", "coding_leader"),
                           ("coding_leader", "coding_developer")):  # fmt: skip
            company.key(to)
            company.call(opener, "delegate_to", to=to, instruction="Look")
            company.call(to, "next_frame")
        pause(company, "coding_developer")
        assert end_due_frames(timezone.now() + timedelta(hours=2)) == 1
        assert [row.state for row in Frame.objects.order_by("id")] == ["failed", "cancelled"]


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.mark.parametrize(("act", "undo"), [(pause, resume), (stop, restart)])
    def test_many_people_pause_once_and_resume_once(self, committed, act, undo):
        ends = at_once([partial(act, committed, by=board(committed, f"p{n}")) for n in range(6)])
        assert ends.count(Code.INVALID_TRANSITION) == 5
        assert Pause.objects.filter(ended_at=None).count() == 1
        ends = at_once([partial(undo, committed, by=board(committed, f"p{n}")) for n in range(6)])
        assert ends.count(Code.INVALID_TRANSITION) == 5
        assert Pause.objects.exclude(ended_at=None).count() == 1
        assert Intervention.objects.count() == 2

    def test_the_board_takes_over_what_hr_has_not_ended(self, committed):
        """Spec: people 39."""
        hr = committed.person("HR", username="hal")
        take_over = partial(take_over_pause, agent=WORKER, reason=REASON, expected_pause=None)
        for _ in range(5):
            pause(committed, by=hr)
            ends = at_once([
                partial(resume, committed, by=hr),
                *[partial(take_over, person=board(committed, name), now=timezone.now())
                  for name in ("alice", "bob")],
            ])  # fmt: skip
            open_ = Pause.objects.filter(ended_at=None).first()
            if open_ is None:
                assert ends == [None, Code.INVALID_TRANSITION, Code.INVALID_TRANSITION]
            else:
                assert ends[0] == Code.NOT_YOURS
                assert sorted(map(str, ends[1:])) == ["INVALID_TRANSITION", "None"]
                assert open_.by_board
                resume(committed)

    def test_a_call_and_a_pause_leave_one_of_two_truths(self, committed):
        committed.key(WORKER)
        mail = {"to": "it_manager", "type": "info", "subject": "S", "body": "B"}
        call = partial(committed.call, WORKER, "send_mail", **mail)
        for _ in range(5):
            before = Mail.objects.filter(from_agent=WORKER).count()
            _, answer = at_once([partial(pause, committed), call])
            sent = Mail.objects.filter(from_agent=WORKER).count() - before
            assert (answer.code, sent) in (("OK", 1), ("AGENT_PAUSED", 0))
            assert call().code == "AGENT_PAUSED"
            resume(committed)


@pytest.mark.django_db(transaction=True)
class TestLive:
    def test_ends_calls_that_wait_streams_and_mcp_at_once(self, committed):
        key = committed.key(WORKER)
        headers = {"Authorization": f"Bearer {key}"}
        found = {}
        with (
            serving() as url,
            httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http,
        ):

            def wait():
                begun = time.monotonic()
                answer = http.post(
                    "/api/v1/tools/read_inbox", json={"wait": LONGEST}, headers=headers
                )
                found["waited"] = (answer.json()["error_code"], time.monotonic() - begun)

            def watch():
                with http.stream("GET", "/api/v1/events", headers=headers) as answer:
                    found["stream"] = "".join(answer.iter_text())

            threads = [threading.Thread(target=each) for each in (wait, watch)]
            for each in threads:
                each.start()
            agent = committed.agent(WORKER).id
            wait_until(lambda: len(wake.WAITERS._waiting.get(agent, ())) == 2)
            pause(committed)
            for each in threads:
                each.join(PATIENCE)
                assert not each.is_alive()
            code, seconds = found["waited"]
            assert code == "AGENT_PAUSED"
            assert seconds < LONGEST
            assert "event: agent" in found["stream"]
            assert REASON in found["stream"]
            refused = http.get("/api/v1/events", headers=headers)
            assert (refused.status_code, refused.json()["error_code"]) == (403, "AGENT_PAUSED")
            asyncio.run(self._over_mcp(url, key))
            resume(committed)
            assert http.post(
                "/api/v1/tools/read_inbox", json={}, headers=headers
            ).status_code == 200  # fmt: skip

    async def _over_mcp(self, url, key):
        async with connected(url, key) as client:
            assert (await client.list_tools()).tools == []
            for name in TOOLS:
                answer = await client.call_tool(name, {})
                assert answer.is_error
                assert answer.structured_content["error_code"] == "AGENT_PAUSED", name
                step = answer.structured_content["next_action"]
                assert step.startswith("stop calling and wait"), name  # it has no tool to use
