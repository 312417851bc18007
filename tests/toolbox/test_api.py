"""The tool API as clients rely on it: envelopes, keys, sessions, limits, lists, tenants."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from ledger.models import Event
from mailroom.models import Mail, MailRejection
from orgchart.keys import revoke_key
from orgchart.models import Agent, ApiKey
from orgchart.policy.vocabulary import ToolMode
from tests import loaded as loading
from tests.company import load_company
from tests.contracts import world as contracts
from tests.oracle import tools as oracle
from tests.oracle.org import AGENTS
from toolbox.authentication import get_or_create_standing_session
from toolbox.faces.exports import listing
from toolbox.models import IdempotencyRecord, RateBucket, Session
from toolbox.modes import close_mode, open_mode
from toolbox.registry import REGISTRY

loaded, nexus = loading.loaded, loading.nexus
MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}
ENVELOPE = ["ok", "error_code", "tool_name", "mode", "message", "next_action", "details"]
NOBODYS = "00000000-0000-4000-8000-000000000000"


def raw(company, path, body, *, who="backend_worker", content_type="application/json", **headers):
    proof = {"Authorization": f"Bearer {company.key(who)}"} if who else {}
    return company.http.post(path, body, content_type=content_type, headers={**proof, **headers})


def session_of(company, who):
    """The id of an agent's standing session."""
    return company.get("/api/v1/me", who).body["session"]["id"]


def coding(company, who):
    """Open coding for an agent's standing session, as a person would."""
    open_mode(
        session_id=session_of(company, who),
        mode=ToolMode.CODING,
        caller=company.person("Board"),
        now=timezone.now(),
        reason="to look",
    )


def listed(company, who):
    return {tool["name"] for tool in company.get("/api/v1/tools", who).body["tools"]}


class TestErrors:
    CASES = [
        ("send_mail", {**MAIL, "subject": 7}, 400, "INVALID_PARAMS"),
        ("send_mail", {**MAIL, "colour": "red"}, 400, "INVALID_PARAMS"),
        ("read_inbox", {"from__startswith": "c"}, 400, "INVALID_PARAMS"),
        ("list_contracts", {"state__in": ["passed"]}, 400, "INVALID_PARAMS"),
        ("create_contract", {}, 403, "TOOL_NOT_BOUND"),
        ("write_file", {"path": "x", "content": "x"}, 403, "MODE_DENIED"),
        ("send_mail", {**MAIL, "to": "ceo"}, 403, "CONTACT_DENIED"),
        ("send_mail", {**MAIL, "type": "tool_request"}, 403, "MAIL_TYPE_DENIED"),
        ("send_mail", {**MAIL, "to": "nobody"}, 403, "RECIPIENT_UNKNOWN"),
        ("send_mail", {**MAIL, "attachments": [{"path": ".env"}]}, 403, "SCOPE_DENIED"),
        ("no_such_tool", {}, 404, "UNKNOWN_TOOL"),
        ("read_mail", {"mail_id": "MAIL-1"}, 404, "NOT_FOUND"),
        ("accept_contract", {"contract_id": "CON-1"}, 404, "NOT_FOUND"),
    ]

    @pytest.mark.parametrize(("tool", "params", "status", "code"), CASES)
    def test_have_one_shape_say_the_rule_and_leave_one_event(
        self, nexus, tool, params, status, code
    ):
        answer = nexus.call("backend_worker", tool, **params)
        assert (answer.status, answer.code) == (status, code)
        assert list(answer.body) == ENVELOPE
        assert answer.body["ok"] is False
        assert (answer.body["tool_name"], answer.body["mode"]) == (tool, "chat_safe")
        assert answer.body["message"]
        assert answer.body["next_action"]
        event = Event.objects.get(decision="deny")
        assert (event.code, event.tool, event.actor) == (code, tool, "agent:backend_worker")

    def test_of_a_channel_without_contract_and_of_an_inactive_recipient(self, nexus):
        mail = {**MAIL, "to": "product_manager", "type": "question"}
        assert nexus.call("frontend_worker", "send_mail", **mail).code == "CONTRACT_REQUIRED"
        Agent.objects.filter(organisation=nexus.organisation, handle="qa_worker").update(
            active=False
        )
        nexus.organisation.policy_version += 1
        nexus.organisation.save()
        mail = {**MAIL, "to": "qa_worker"}
        assert nexus.call("it_manager", "send_mail", **mail).code == "RECIPIENT_INACTIVE"
        nexus.organisation.policy_version -= 1

    def test_of_contracts(self, nexus):
        contract = contracts.issue(nexus)
        paper = {"contract_id": contract}
        stale = nexus.call("backend_worker", "accept_contract", expected_version=9, **paper)
        assert (stale.status, stale.code) == (409, "VERSION_MISMATCH")
        nexus.call("backend_worker", "accept_contract", **paper)
        again = nexus.call("backend_worker", "accept_contract", **paper)
        assert (again.status, again.code) == (409, "INVALID_TRANSITION")
        end = {"outcome": "cancelled", "reason": "mine"}
        assert nexus.call("backend_worker", "close_contract", **paper, **end).code == "NOT_YOURS"
        up = nexus.call("it_manager", "create_contract", to="ceo", title="x", body="x")
        assert up.code == "LEVEL_DENIED"
        hire = nexus.call("hr_manager", "deactivate_agent", agent="qa_worker", reason="x")
        assert hire.code == "AUTHORISATION_REQUIRED"

    def test_name_every_wrong_field(self, nexus):
        answer = nexus.call("backend_worker", "send_mail", to=1, type="info", body="x", x=1)
        assert set(answer.body["details"]) == {"to", "subject", "x"}

    @pytest.mark.parametrize(
        "body",
        [
            b"[]",
            b'"x"',
            b"null",
            b"{",
            b'{"to": NaN}',
            b'{"to": 1e999}',
            b'{"to": "a", "to": "b"}',
            b'{"subject": "\\ud800"}',
            b'{"subject": "\\u0000"}',
            b"\xff\xfe",
            b'{"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
            b'{"limit": ' + b"9" * 5000 + b"}",
        ],
        ids=lambda body: body[:24],
    )
    def test_answer_a_body_that_cannot_be_read(self, nexus, body):
        answer = raw(nexus, "/api/v1/tools/send_mail", body)
        assert answer.status_code == 400
        assert answer.json()["error_code"] == "INVALID_PARAMS"
        assert list(answer.json()) == ENVELOPE
        assert Event.objects.filter(decision="deny").count() == 1

    @pytest.mark.parametrize(
        "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
    )
    def test_answer_another_content_type(self, nexus, kind):
        body = json.dumps(MAIL)
        answer = raw(nexus, "/api/v1/tools/send_mail", body, content_type=kind)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")

    def test_answer_a_body_of_more_than_a_mebibyte(self, nexus):
        answer = raw(nexus, "/api/v1/tools/send_mail", json.dumps({"body": "x" * 2**20}))
        assert (answer.status_code, answer.json()["error_code"]) == (413, "TOO_LARGE")
        whole = raw(nexus, "/api/v1/tools/task_create", b"{}" + b" " * (2**20 - 2))
        assert (whole.status_code, whole.json()["error_code"]) == (400, "INVALID_PARAMS")

    @pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
    def test_answer_another_method(self, nexus, method):
        proof = {"Authorization": f"Bearer {nexus.key('ceo')}"}
        answer = getattr(nexus.http, method)("/api/v1/tools/send_mail", headers=proof)
        assert answer.status_code == 405
        assert answer.json()["ok"] is False

    @pytest.mark.parametrize(
        "path", ["/api/v1/nothing", "/api/", "/api/v2/tools", "/api/v1/tools/"]
    )
    def test_answer_an_address_where_nothing_is(self, nexus, path):
        answer = nexus.http.get(path, headers={"Authorization": f"Bearer {nexus.key('ceo')}"})
        assert (answer.status_code, answer.json()["error_code"]) == (404, "NOT_FOUND")


class TestKeys:
    @pytest.mark.parametrize(
        "proof",
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer nxs_",
            "Bearer nxs_wrong",
            "Basic bnhzXzpueHNf",
            "nxs_x",
            "Bearer nxs_" + "a" * 500,
            "Bearer nxs_\x00",
        ],
    )
    def test_that_prove_nobody_are_401(self, nexus, proof):
        answer = nexus.http.get("/api/v1/me", headers={"Authorization": proof})
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"
        assert answer.json()["error_code"] == "UNAUTHENTICATED"

    def test_in_an_address_are_not_looked_at(self, nexus):
        key = nexus.key("ceo")
        for query in ("key", "api_key", "token", "authorization", "access_token"):
            assert nexus.http.get(f"/api/v1/me?{query}={key}").status_code == 401

    def test_are_kept_as_digests_only(self, nexus):
        key = nexus.key("ceo")
        stored = ApiKey.objects.get(prefix=key[:12])
        assert key.encode() not in bytes(stored.digest)
        assert len(bytes(stored.digest)) == 32

    def test_are_kept_of_no_refused_call(self, nexus):
        """A client that puts its key in a wrong place shows it to nobody who reads the ledger."""
        key = nexus.key("qa_worker")
        for name in (key, f"Bearer {key}"):
            assert nexus.call("qa_worker", name).code == "UNKNOWN_TOOL"
            nexus.post("/api/v1/explain", {"tool": name}, "qa_worker")
        nexus.post(f"/api/v1/tools/{key}", ["no object"], "qa_worker")
        nexus.call("qa_worker", "read_inbox", {"X-Nexus-Session": key})
        nexus.call("qa_worker", "send_mail", {"Idempotency-Key": key}, **MAIL)
        nexus.call("qa_worker", "send_mail", **{**MAIL, "to": key})
        nexus.call("qa_worker", "send_mail", **{**MAIL, "type": key})
        nexus.call("qa_worker", "read_inbox", **{key: 1})
        kept = [*Event.objects.values(), *MailRejection.objects.values()]
        kept += [*Mail.objects.values(), *IdempotencyRecord.objects.values()]
        assert key[:16] not in str(kept)
        assert str(kept).count(f"{key[:12]}…") > 8

    def test_say_who_calls_whatever_else_says_otherwise(self, nexus):
        headers = {"X-Agent": "ceo", "X-Nexus-Agent": "ceo", "X-Organisation": "dev-team"}
        me = nexus.get("/api/v1/me?agent=ceo", "qa_worker", headers).body
        assert (me["agent"], me["role"], me["level"]) == ("qa_worker", "qa_worker", 3)

    def test_that_are_revoked_prove_nobody_in_a_thousand_calls(self, nexus, settings):
        settings.NEXUS_RATE_BURST = 5000
        key = nexus.key("qa_worker")
        assert nexus.get("/api/v1/me", "qa_worker").status == 200
        revoke_key(prefix=key[:12], caller=nexus.system, now=timezone.now(), reason="lost")
        answers = {nexus.get("/api/v1/me", "qa_worker").status for _ in range(1000)}
        assert answers == {401}
        (event,) = Event.objects.filter(decision="deny")  # one in a while: no flood of the ledger
        assert (event.actor, event.code) == ("agent:qa_worker", "UNAUTHENTICATED")


class TestWhatBindsATool:
    def listed(self, pack, who):
        return {
            tool["name"]: tool["source"] for tool in listing(load_company(pack).caller(who).holder)
        }

    def test_is_a_skill_where_only_the_list_of_skills_brings_it(self, db):
        found = self.listed("soloqueue", "investment_analyst")
        assert (found["web_search"], found["escalate"]) == ("skill", "role")
        assert "web_search" not in self.listed("soloqueue", "investment_trader")

    def test_is_the_role_where_the_role_has_it(self, db):
        assert self.listed("nexus", "research_worker")["web_search"] == "role"

    def test_is_the_role_for_an_office_too(self, db):
        assert self.listed("constitution", "planner")["case_submit"] == "role"


class TestIdempotency:
    KEY = {"Idempotency-Key": "once"}

    def test_gives_the_first_answer_again_and_does_nothing(self, nexus):
        first = nexus.call("backend_worker", "send_mail", self.KEY, **MAIL)
        again = nexus.call("backend_worker", "send_mail", self.KEY, **MAIL)
        assert first.body == again.body
        assert Mail.objects.count() == 1

    @pytest.mark.parametrize("to", ["it_manager", "ceo"])
    def test_gives_it_again_to_the_letter(self, nexus, to):
        mail = {**MAIL, "to": to}
        texts = {
            json.dumps(nexus.call("backend_worker", "send_mail", self.KEY, **mail).body)
            for _ in range(2)
        }
        texts |= {
            json.dumps(nexus.post("/api/v1/sessions", {}, "qa_worker", self.KEY).body)
            for _ in range(2)
        }
        assert len(texts) == 2

    def test_is_a_mismatch_with_another_body_or_tool(self, nexus):
        nexus.call("backend_worker", "send_mail", self.KEY, **MAIL)
        other = nexus.call("backend_worker", "send_mail", self.KEY, **{**MAIL, "body": "No."})
        assert (other.status, other.code) == (409, "IDEMPOTENCY_MISMATCH")
        tool = nexus.call("backend_worker", "read_inbox", self.KEY)
        assert tool.code == "IDEMPOTENCY_MISMATCH"
        assert Mail.objects.count() == 1

    def test_gives_a_refusal_again_too(self, nexus):
        mail = {**MAIL, "to": "ceo"}
        first = nexus.call("backend_worker", "send_mail", self.KEY, **mail)
        again = nexus.call("backend_worker", "send_mail", self.KEY, **mail)
        assert first.body == again.body
        assert Event.objects.filter(decision="deny").count() == 1

    def test_keeps_no_refusal_by_a_mode_or_a_restriction(self, nexus):
        def ask(tool, **params):
            return nexus.call("backend_worker", tool, {"Idempotency-Key": tool}, **params).code

        worker = {"agent": "backend_worker", "tool": "send_mail", "reason": "r"}
        nexus.call("it_manager", "manage_tools", action="tighten", modes=[], **worker)
        assert (ask("run_test", path="tests/"), ask("send_mail", **MAIL)) == (
            "MODE_DENIED",
            "TOOL_DENIED",
        )
        nexus.call("it_manager", "manage_tools", action="restore", **worker)
        coding(nexus, "backend_worker")
        assert ask("run_test", path="tests/") == "INVALID_PARAMS"
        assert [ask("send_mail", **MAIL) for _ in range(2)] == ["OK", "OK"]
        assert Mail.objects.filter(subject=MAIL["subject"]).count() == 1

    def test_is_each_agents_own(self, nexus):
        for who in ("backend_worker", "qa_worker"):
            assert nexus.call(who, "send_mail", self.KEY, **MAIL).code == "OK"
        assert Mail.objects.count() == 2

    def test_ends_after_a_day(self, nexus):
        nexus.call("backend_worker", "send_mail", self.KEY, **MAIL)
        IdempotencyRecord.objects.update(due_at=timezone.now() - timedelta(seconds=1))
        assert nexus.call("backend_worker", "send_mail", self.KEY, **MAIL).code == "OK"
        assert Mail.objects.count() == 2

    @pytest.mark.parametrize("key", ["", "k" * 256, "a\x7fb"])
    def test_takes_no_odd_key(self, nexus, key):
        answer = nexus.call("backend_worker", "send_mail", {"Idempotency-Key": key}, **MAIL)
        assert answer.code == "INVALID_PARAMS"
        assert not Mail.objects.exists()
        assert Event.objects.filter(action="tool.denied", code="INVALID_PARAMS").count() == 1

    def test_holds_for_opening_a_session_as_well(self, nexus):
        one = nexus.post("/api/v1/sessions", {}, "qa_worker", self.KEY)
        two = nexus.post("/api/v1/sessions", {}, "qa_worker", self.KEY)
        assert one.status == two.status == 201
        assert one.body == two.body

    def test_holds_for_explaining_as_well(self, nexus):
        contract = contracts.issue(nexus)
        asked = {"tool": "accept_contract", "params": {"contract_id": contract}}
        one = nexus.post("/api/v1/explain", asked, "backend_worker", self.KEY)
        contracts.accept(nexus, contract)
        two = nexus.post("/api/v1/explain", asked, "backend_worker", self.KEY)
        assert one.status == two.status == 200
        assert one.body == two.body
        assert one.body["allowed"]
        assert Event.objects.filter(action="call.explained").count() == 1
        assert not nexus.post("/api/v1/explain", asked, "backend_worker").body["allowed"]
        other = nexus.post("/api/v1/explain", {"tool": "read_inbox"}, "backend_worker", self.KEY)
        assert (other.status, other.code) == (409, "IDEMPOTENCY_MISMATCH")
        tool = nexus.post("/api/v1/tools/explain", asked, "backend_worker", self.KEY)  # no such one
        assert (tool.status, tool.code) == (409, "IDEMPOTENCY_MISMATCH")

    def test_keeps_no_explanation_of_a_refusal_by_a_mode(self, nexus):
        asked = {"tool": "run_test", "params": {"path": "tests/"}}
        one = nexus.post("/api/v1/explain", asked, "backend_worker", self.KEY).body
        assert one["error_code"] == "MODE_DENIED"
        coding(nexus, "backend_worker")
        two = nexus.post("/api/v1/explain", asked, "backend_worker", self.KEY).body
        assert two["error_code"] != "MODE_DENIED"


class TestSessions:
    def test_open_in_the_default_mode_whatever_is_asked(self, nexus):
        made = nexus.post("/api/v1/sessions", {}, "backend_worker")
        assert (made.status, made.body["mode"]) == (201, "chat_safe")
        for wish in ({"mode": "coding"}, {"contract": 1}, {"contract": "CON-1", "mode": "coding"}):
            assert nexus.post("/api/v1/sessions", wish, "backend_worker").status == 400

    def test_are_their_agents_own(self, nexus):
        made = nexus.post("/api/v1/sessions", {}, "backend_worker").body["id"]
        mine = nexus.get("/api/v1/me", "backend_worker", {"X-Nexus-Session": made})
        assert mine.body["session"]["id"] == made
        for foreign in (made, NOBODYS, "x", "", "' OR 1=1"):
            answer = nexus.get("/api/v1/me", "qa_worker", {"X-Nexus-Session": foreign})
            assert (answer.status, answer.code) == (404, "NOT_FOUND"), foreign
            event = Event.objects.latest("seq")
            assert (event.actor, event.code) == ("agent:qa_worker", "NOT_FOUND"), foreign
        assert nexus.get(f"/api/v1/sessions/{made}", "qa_worker").status == 404
        assert nexus.get(f"/api/v1/sessions/{made}", "backend_worker").status == 200

    def test_have_modes_of_their_own(self, nexus):
        other = nexus.post("/api/v1/sessions", {}, "backend_worker").body["id"]
        coding(nexus, "backend_worker")
        assert nexus.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "coding"
        inside = nexus.get("/api/v1/me", "backend_worker", {"X-Nexus-Session": other})
        assert inside.body["session"]["mode"] == "chat_safe"

    @pytest.mark.parametrize("stored", ["coding", "CODING", "root", ""])
    def test_fall_back_to_chat_safe_when_nothing_backs_what_the_row_says(self, nexus, stored):
        session = session_of(nexus, "backend_worker")
        Session.objects.filter(id=session).update(mode=stored)
        assert nexus.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "chat_safe"
        write = nexus.call("backend_worker", "write_file", path="x", content="x")
        assert write.code == "MODE_DENIED"

    def test_close_their_mode_at_once(self, nexus):
        coding(nexus, "qa_worker")
        assert "run_test" in listed(nexus, "qa_worker")
        close_mode(
            session_id=session_of(nexus, "qa_worker"),
            caller=nexus.person("Board"),
            now=timezone.now(),
            reason="enough",
        )
        assert "run_test" not in listed(nexus, "qa_worker")


class TestTheRate:
    def test_beyond_its_burst_is_429_with_a_time_to_wait(self, nexus, settings):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = 5, 6
        nexus.key("qa_worker"), nexus.key("ceo")
        statuses = [nexus.get("/api/v1/me", "qa_worker").status for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2
        answer = nexus.http.get(
            "/api/v1/me", headers={"Authorization": f"Bearer {nexus.key('qa_worker')}"}
        )
        assert answer.json()["error_code"] == "RATE_LIMITED"
        assert 1 <= int(answer["Retry-After"]) <= 10
        assert nexus.get("/api/v1/me", "ceo").status == 200, "neighbours are unharmed"

    def test_comes_back_with_time(self, nexus, settings):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = 2, 60
        assert [nexus.get("/api/v1/me", "ceo").status for _ in range(3)] == [200, 200, 429]
        earlier = timezone.now() - timedelta(seconds=2)
        RateBucket.objects.filter(agent__handle="ceo").update(at=earlier)
        assert nexus.get("/api/v1/me", "ceo").status == 200


class TestTheList:
    @pytest.mark.parametrize("mode", ["chat_safe", "coding"])
    @pytest.mark.parametrize("who", AGENTS)
    def test_is_what_is_specified_and_exactly_what_would_run(self, nexus, settings, who, mode):
        settings.NEXUS_RATE_BURST = 5000
        if mode == "coding":
            coding(nexus, who)
        shown = listed(nexus, who)
        assert shown == oracle.visible(who, mode)
        refused = {"TOOL_NOT_BOUND", "TOOL_DENIED", "MODE_DENIED", "UNKNOWN_TOOL"}
        for tool in REGISTRY.all():
            if tool.name in shown:
                continue
            answer = nexus.call(who, tool.name)
            assert answer.code in refused, tool.name
        for name in sorted(shown):
            answer = nexus.post("/api/v1/explain", {"tool": name, "params": {"?": 1}}, who)
            assert answer.body["error_code"] == "INVALID_PARAMS", name

    def test_says_why_a_tool_is_not_there_in_different_words(self, nexus):
        assert nexus.call("ceo", "write_file").code == "TOOL_NOT_BOUND"
        assert nexus.call("backend_worker", "write_file").code == "MODE_DENIED"
        assert nexus.call("ceo", "fly").code == "UNKNOWN_TOOL"

    @pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
    def test_has_the_same_tools_in_every_shape(self, nexus, form):
        plain = nexus.get("/api/v1/tools", "qa_worker").body["tools"]
        other = nexus.get(f"/api/v1/tools?format={form}", "qa_worker").body["tools"]
        bare = [tool["function"] if form == "openai" else tool for tool in other]
        key = {"openai": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}[form]
        assert [(t["name"], t["input_schema"]) for t in plain] == [
            (t["name"], t[key]) for t in bare
        ]

    def test_knows_no_other_shape(self, nexus):
        assert nexus.get("/api/v1/tools?format=xml", "ceo").status == 400

    @pytest.mark.parametrize("mode", ["chat_safe", "coding"])
    def test_is_what_the_prompt_names(self, nexus, mode):
        if mode == "coding":
            coding(nexus, "backend_worker")
        prompt = nexus.get("/api/v1/prompt", "backend_worker").body["prompt"]
        tooling = prompt.split("# Your tools\n")[1].split("\n\n")[0]
        named = {line[2:].split(":")[0] for line in tooling.splitlines()}
        assert named == listed(nexus, "backend_worker")
        assert f"This session is in {mode} mode" in prompt

    def test_is_in_the_schema_with_one_path_for_each_tool(self, nexus):
        schema = nexus.http.get("/api/schema/").json()
        assert schema["openapi"].startswith("3.1")
        for tool in REGISTRY.all():
            assert f"/api/v1/tools/{tool.name}" in schema["paths"]


class TestExplain:
    def test_says_what_the_call_answers_by_which_rule_and_does_nothing(self, nexus):
        for to, allowed, code in [("it_manager", True, None), ("ceo", False, "CONTACT_DENIED")]:
            asked = {"tool": "send_mail", "params": {**MAIL, "to": to}}
            answer = nexus.post("/api/v1/explain", asked, "backend_worker").body
            assert (answer["allowed"], answer["error_code"]) == (allowed, code)
            assert set(answer) == {"allowed", "error_code", "rule", "message"}
            assert answer["rule"]
        assert not Mail.objects.exists()
        assert not MailRejection.objects.exists()
        assert not Event.objects.filter(decision="deny").exists()

    def test_moves_no_contract(self, nexus):
        contract = contracts.issue(nexus)
        asked = {"tool": "accept_contract", "params": {"contract_id": contract}}
        answer = nexus.post("/api/v1/explain", asked, "backend_worker").body
        assert answer["allowed"]
        assert contracts.row(contract).state == "pending"
        assert nexus.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "chat_safe"

    @pytest.mark.parametrize(
        "body", [{}, {"tool": 7}, {"tool": "send_mail", "params": []}, {"tool": "x", "as": "ceo"}]
    )
    def test_takes_a_tool_and_its_parameters(self, nexus, body):
        assert nexus.post("/api/v1/explain", body, "ceo").status == 400


class TestTenants:
    def test_see_nothing_of_each_other_by_any_id(self, nexus):
        dev = load_company("dev-team")
        mail = nexus.call("backend_worker", "send_mail", **MAIL).result["mail_id"]
        contract = contracts.issue(nexus)
        stranger = next(a.handle for a in dev.policy.agents.values() if a.superior == "board")
        made = nexus.post("/api/v1/sessions", {}, "backend_worker").body["id"]
        tries = [
            dev.call(stranger, "read_mail", mail_id=mail),
            dev.call(stranger, "accept_contract", contract_id=contract),
            dev.call(stranger, "close_contract", contract_id=contract, outcome="cancelled",
                     reason="x"),
            dev.get(f"/api/v1/sessions/{made}", stranger),
            dev.get("/api/v1/me", stranger, {"X-Nexus-Session": made}),
        ]  # fmt: skip
        assert [t.code for t in tries] == ["NOT_FOUND"] * len(tries)
        assert not any("backend_worker" in json.dumps(t.body) for t in tries)
        assert dev.call(stranger, "list_contracts").result["contracts"] == []
        assert dev.call(stranger, "read_inbox", status="all").result["mails"] == []

    def test_with_agents_of_one_handle_keep_them_apart(self, nexus):
        dev = load_company("dev-team")
        shared = set(nexus.policy.agents) & set(dev.policy.agents)
        for handle in shared:
            assert nexus.get("/api/v1/me", handle).body["organisation"] == "nexus"
            assert dev.get("/api/v1/me", handle).body["organisation"] == "dev-team"
        here = nexus.agent("ceo").id, nexus.organisation.id
        assert get_or_create_standing_session(*here, now=timezone.now())


class TestQueries:
    @pytest.mark.parametrize(
        ("who", "tool", "params", "most"),
        [
            ("backend_worker", "current_time", {}, 1),
            ("backend_worker", "send_mail", MAIL, 2),
            ("backend_worker", "read_inbox", {}, 2),
        ],
    )
    def test_of_a_call_are_counted(
        self, nexus, django_assert_max_num_queries, who, tool, params, most
    ):
        nexus.call(who, tool, **params)
        nexus.count_ahead()
        with django_assert_max_num_queries(most):
            assert nexus.call(who, tool, **params).code == "OK"

    @pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/tools"])
    def test_of_authentication_and_policy_are_one(self, nexus, django_assert_num_queries, path):
        nexus.get(path, "qa_worker")
        with django_assert_num_queries(1):
            assert nexus.get(path, "qa_worker").status == 200
