"""Contracts through the door: what clients rely on, what is tried, what it costs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.models import Contract
from ledger.models import Event
from mailroom.models import Mail, MailRejection
from orgchart.policy.vocabulary import ToolMode
from tests.company import load_company
from tests.contracts.world import DIGEST, approve, at_state, issue, judge, row

pytestmark = pytest.mark.django_db

WORK = {"title": "Login", "body": "Build it."}


def create(nexus, to="backend_worker", by="it_manager", **fields):
    return nexus.call(by, "create_contract", to=to, **{**WORK, **fields})


def standing():
    """Everything about contracts that an attack might change."""
    return (
        list(Contract.objects.order_by("id").values_list("id", "state", "version", "issuer_id")),
        Mail.objects.exclude(from_agent="system").count(),
    )


class TestTheWire:
    def test_create_contract_answers_ids_state_and_version(self, nexus):
        result = create(nexus).result
        assert set(result) == {"contract_id", "mail_id", "state", "version"}
        assert (result["state"], result["version"]) == ("pending", 1)

    def test_generate_contract_takes_every_parameter(self, nexus):
        result = nexus.call(
            "ceo", "generate_contract", to="it_manager", **WORK, priority="critical",
            deadline="2126-12-31T18:00:00+02:00", kind="work", mode="coding",
            workspace_scope=["src/"], assigned_branch="feature/login", grants=[], supersedes=None,
        ).result  # fmt: skip
        contract = row(result["contract_id"])
        assert contract.deadline.isoformat() == "2126-12-31T16:00:00+00:00"
        assert (contract.priority, contract.mode) == ("critical", "coding")

    def test_a_life_from_issue_to_passed(self, nexus):
        contract = create(
            nexus, mode="coding", workspace_scope=["src/"], assigned_branch="feature/login"
        ).result["contract_id"]
        accepted = nexus.call(
            "backend_worker", "accept_contract", contract_id=contract, expected_version=1
        )
        assert accepted.result == {"state": "in_progress", "version": 2}
        me = nexus.get("/api/v1/me", "backend_worker").body
        assert me["session"]["mode"] == "coding"
        assert me["session"]["contract"] == contract
        progress = nexus.call(
            "backend_worker", "submit_report", contract_id=contract, kind="progress",
            title="Half", body="…", report_type="status",
        ).result  # fmt: skip
        assert (progress["state"], progress["version"]) == ("in_progress", 2)
        done = nexus.call(
            "backend_worker", "submit_report", contract_id=contract, kind="completion",
            title="Done", body="…", expected_version=2,
        ).result  # fmt: skip
        assert set(done) == {"mail_id", "report_id", "state", "version"}
        assert (done["state"], done["version"]) == ("review", 3)
        assert nexus.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "chat_safe"
        early = nexus.call(
            "it_manager", "close_contract", contract_id=contract, outcome="passed", reason="good"
        )
        assert early.code == "APPROVAL_REQUIRED"
        verdict = nexus.call(
            "qa_worker", "write_verdict", contract_id=contract, verdict="PASS",
            evidence="42 passed: " + "x" * 9000, body="",
        ).result  # fmt: skip
        assert set(verdict) == {"verdict_id", "mail_id", "commit", "run_digest"}
        closed = nexus.call(
            "it_manager", "close_contract", contract_id=contract, outcome="passed",
            reason="good", expected_version=3,
        )  # fmt: skip
        assert closed.result == {"state": "passed", "version": 4}

    @pytest.mark.parametrize("outcome", ["passed", "failed"])
    def test_a_verdict_on_the_work_may_come_without_a_reason(self, nexus, outcome):
        contract = at_state(nexus, "review")
        closed = nexus.call("it_manager", "close_contract", contract_id=contract, outcome=outcome)
        assert closed.result["state"] == outcome
        whole = nexus.call("backend_worker", "read_contract", contract_id=contract).result
        assert whole["closed_reason"] == f"{outcome}, no reason given"

    def test_cancelling_needs_a_reason_of_whoever_may_cancel(self, nexus):
        contract = at_state(nexus, "review")
        for handle, code in (("it_manager", "INVALID_PARAMS"), ("backend_worker", "NOT_YOURS")):
            said = nexus.call(handle, "close_contract", contract_id=contract, outcome="cancelled")
            assert said.code == code

    def test_read_and_list_show_handles_and_utc_times(self, nexus):
        contract = create(nexus, deadline="2126-12-31").result["contract_id"]
        whole = nexus.call("backend_worker", "read_contract", contract_id=contract).result
        assert (whole["issuer"], whole["assignee"]) == ("it_manager", "backend_worker")
        assert whole["deadline"] == "2126-12-31T00:00:00Z"
        assert whole["body"] == "Build it."
        page = nexus.call("it_manager", "list_contracts", role="issued", state="pending").result
        assert [c["contract_id"] for c in page["contracts"]] == [contract]
        assert "body" not in page["contracts"][0]
        assert page["next_cursor"] is None

    def test_approve_deployment_answers_the_contract(self, nexus):
        result = nexus.call(
            "it_manager", "approve_deployment", to="devops_worker", environment="production",
            artifact=DIGEST, expires_at="2036-01-01T00:00:00Z", reason="release",
        ).result  # fmt: skip
        assert row(result["contract_id"]).kind == "deployment_approval"

    def test_request_budget_answers_the_mail(self, nexus):
        result = nexus.call("it_manager", "request_budget", amount="10.50", purpose="disks").result
        assert Mail.objects.get(id=result["mail_id"]).to_agent == "ceo"

    def test_the_same_key_issues_once(self, nexus):
        headers = {"Idempotency-Key": "one"}
        first = nexus.call("it_manager", "create_contract", headers, to="backend_worker", **WORK)
        again = nexus.call("it_manager", "create_contract", headers, to="backend_worker", **WORK)
        assert first.body == again.body
        assert Contract.objects.count() == 1

    def test_explaining_does_nothing(self, nexus):
        contract = issue(nexus, workspace_scope=["src/"])
        nexus.caller("backend_worker")
        before = standing(), Event.objects.count()
        issued = nexus.post(
            "/api/v1/explain",
            {
                "tool": "create_contract",
                "params": {"to": "backend_worker", "workspace_scope": ["src/"], **WORK},
            },
            "it_manager",
        ).body
        assert "C-07" in issued["rule"]
        for handle, tool, params, code in (
            ("it_manager", "create_contract", {"to": "backend_worker", **WORK}, None),
            ("it_manager", "create_contract", {"to": "ceo", **WORK}, "LEVEL_DENIED"),
            ("backend_worker", "accept_contract", {"contract_id": contract}, None),
            (
                "it_manager",
                "close_contract",
                {"contract_id": contract, "outcome": "passed", "reason": "x"},
                "INVALID_TRANSITION",
            ),
        ):
            said = nexus.post("/api/v1/explain", {"tool": tool, "params": params}, handle).body
            assert (said["allowed"], said["error_code"]) == (code is None, code)
            assert said["rule"]
        asked = Event.objects.filter(action="call.explained")
        assert (standing(), Event.objects.count() - asked.count()) == before
        assert asked.count() == 5  # one for each question, and nothing of what was asked about
        last = asked.latest("seq")
        assert (last.actor, last.tool) == ("agent:it_manager", "close_contract")
        assert last.details["code"] == "INVALID_TRANSITION"


class TestWhatWillBeTried:
    """Every attack is refused with its code, changes nothing, leaves one event, is no 500."""

    def refused(self, nexus, code, handle, tool, **params):
        nexus.caller(handle)
        before, events = standing(), Event.objects.exclude(subject__startswith="mail:").count()
        answer = nexus.call(handle, tool, **params)
        assert (answer.code, answer.status < 500) == (code, True), answer.body
        assert answer.body["next_action"]
        assert standing() == before
        assert Event.objects.exclude(subject__startswith="mail:").count() == events + 1
        denied = Event.objects.order_by("seq").last()
        assert (denied.decision, denied.code, denied.actor) == ("deny", code, f"agent:{handle}")
        return answer.body

    @pytest.mark.parametrize(
        ("by", "to", "code"),
        [
            ("it_manager", "ceo", "LEVEL_DENIED"),
            ("it_manager", "it_manager", "LEVEL_DENIED"),
            ("it_manager", "it.manager", "LEVEL_DENIED"),
            ("it_manager", "product_manager", "LEVEL_DENIED"),
            ("it_manager", "research_worker", "CONTACT_DENIED"),
            ("it_manager", "board", "CONTACT_DENIED"),
            ("it_manager", "Board", "RECIPIENT_UNKNOWN"),
            ("it_manager", " backend_worker", "RECIPIENT_UNKNOWN"),
            ("it_manager", "BACKEND_WORKER", "RECIPIENT_UNKNOWN"),
            ("it_manager", "bаckend_worker", "RECIPIENT_UNKNOWN"),
            ("it_manager", "nobody", "RECIPIENT_UNKNOWN"),
            ("product_manager", "backend_worker", "CONTACT_DENIED"),
            ("product_manager", "devops_worker", "CONTACT_DENIED"),
            ("hr_manager", "backend_worker", "CONTACT_DENIED"),
            ("hr_manager", "ceo", "LEVEL_DENIED"),
            ("hr_manager", "hr_manager", "LEVEL_DENIED"),
        ],
    )
    def test_a_contract_to_somebody_else(self, nexus, by, to, code):
        self.refused(nexus, code, by, "create_contract", to=to, **WORK)
        rejection = MailRejection.objects.get()
        assert (rejection.from_agent, rejection.mail_type) == (by, "contract")

    @pytest.mark.parametrize("worker", ["backend_worker", "research_worker", "qa_worker"])
    def test_a_contract_of_the_top_agent_to_a_worker(self, nexus, worker):
        self.refused(nexus, "CONTACT_DENIED", "ceo", "generate_contract", to=worker, **WORK)

    def test_a_violation_is_told_to_the_violator(self, nexus):
        self.refused(nexus, "CONTACT_DENIED", "hr_manager", "create_contract",
                     to="backend_worker", **WORK)  # fmt: skip
        told = Mail.objects.get(from_agent="system")
        assert told.to_agent == "hr_manager"
        assert "may not contact" in told.subject

    @pytest.mark.parametrize("tool", ["create_contract", "generate_contract", "approve_deployment"])
    @pytest.mark.parametrize("worker", ["backend_worker", "qa_worker", "research_worker"])
    def test_a_worker_issuing(self, nexus, worker, tool):
        self.refused(nexus, "TOOL_NOT_BOUND", worker, tool, to="frontend_worker", **WORK)

    def test_a_sender_in_the_body_is_ignored(self, nexus):
        result = create(nexus, from_="ceo", from_agent="ceo").result
        assert row(result["contract_id"]).issuer_name == "it_manager"

    @pytest.mark.parametrize("kind", ["org_change", "budget", "deployment_approval"])
    def test_an_authorisation_of_ones_own_making(self, nexus, kind):
        to = {"org_change": "hr_manager"}.get(kind, "devops_worker")
        by = "hr_manager" if kind == "org_change" else "it_manager"
        code = "LEVEL_DENIED" if kind == "org_change" else "INVALID_PARAMS"
        self.refused(nexus, code, by, "create_contract", to=to, kind=kind, **WORK)

    @pytest.mark.parametrize("outcome", ["passed", "failed", "cancelled"])
    @pytest.mark.parametrize("state", ["pending", "in_progress", "review"])
    def test_closing_ones_own_work(self, nexus, state, outcome):
        contract = at_state(nexus, state)
        self.refused(nexus, "NOT_YOURS", "backend_worker", "close_contract",
                     contract_id=contract, outcome=outcome, reason="done")  # fmt: skip

    def test_passing_code_around_qa(self, nexus):
        contract = at_state(nexus, "review", workspace_scope=["src/"])
        self.refused(nexus, "APPROVAL_REQUIRED", "it_manager", "close_contract",
                     contract_id=contract, outcome="passed", reason="trust me")  # fmt: skip
        judge(nexus, contract, "FAIL")
        self.refused(nexus, "APPROVAL_REQUIRED", "it_manager", "close_contract",
                     contract_id=contract, outcome="passed", reason="trust me")  # fmt: skip

    def test_a_verdict_by_anybody_but_qa(self, nexus):
        contract = at_state(nexus, "review", workspace_scope=["src/"])
        for handle in ("it_manager", "backend_worker", "devops_worker", "ceo"):
            self.refused(nexus, "TOOL_NOT_BOUND", handle, "write_verdict",
                         contract_id=contract, verdict="PASS", evidence="x")  # fmt: skip

    @pytest.mark.parametrize("much", ["x" * 10_001, ["x"] * 201, ["x" * 10_001]], ids=len)
    def test_a_verdict_with_too_much_evidence(self, nexus, much):
        contract = at_state(nexus, "review", workspace_scope=["src/"])
        self.refused(nexus, "INVALID_PARAMS", "qa_worker", "write_verdict",
                     contract_id=contract, verdict="PASS", evidence=much)  # fmt: skip

    @pytest.mark.parametrize("verdict", ["pass", "Pass", "OK", "", None, True, ["PASS"]])
    def test_a_verdict_by_another_word(self, nexus, verdict):
        contract = at_state(nexus, "review", workspace_scope=["src/"])
        self.refused(nexus, "INVALID_PARAMS", "qa_worker", "write_verdict",
                     contract_id=contract, verdict=verdict, evidence="x")  # fmt: skip

    @pytest.mark.parametrize(
        "version", ["1", True, False, 0, -1, 2**31, 2**63, 10**400, 1.0, 1.5, [1], {"a": 1}]
    )
    def test_a_version_that_is_none(self, nexus, version):
        contract = issue(nexus)
        self.refused(nexus, "INVALID_PARAMS", "backend_worker", "accept_contract",
                     contract_id=contract, expected_version=version)  # fmt: skip

    def test_a_stale_version(self, nexus):
        contract = at_state(nexus, "in_progress")
        body = self.refused(nexus, "VERSION_MISMATCH", "it_manager", "close_contract",
                            contract_id=contract, outcome="cancelled", reason="x",
                            expected_version=1)  # fmt: skip
        assert body["details"] == {"expected": 1, "current": 2}

    @pytest.mark.parametrize(
        ("field", "value", "code"),
        [
            ("workspace_scope", ["../"], "SCOPE_DENIED"),
            ("workspace_scope", ["/etc"], "SCOPE_DENIED"),
            ("workspace_scope", ["company/"], "SCOPE_DENIED"),
            ("workspace_scope", ["agents/ceo/"], "SCOPE_DENIED"),
            ("workspace_scope", ["src/", ".env"], "SCOPE_DENIED"),
            ("workspace_scope", "src/", "INVALID_PARAMS"),
            ("workspace_scope", [1], "INVALID_PARAMS"),
            ("workspace_scope", ["a/"] * 51, "INVALID_PARAMS"),
            ("assigned_branch", "main", "BRANCH_DENIED"),
            ("assigned_branch", "Master", "BRANCH_DENIED"),
            ("assigned_branch", "refs/heads/main", "BRANCH_DENIED"),
            ("assigned_branch", "main/login", "BRANCH_DENIED"),
            ("assigned_branch", "-f", "BRANCH_DENIED"),
            ("assigned_branch", "x" * 300, "INVALID_PARAMS"),
            ("mode", "root", "INVALID_PARAMS"),
            ("mode", "CODING", "INVALID_PARAMS"),
            ("kind", "favour", "INVALID_PARAMS"),
            ("priority", "asap", "INVALID_PARAMS"),
            ("deadline", "tomorrow", "INVALID_PARAMS"),
            ("deadline", "2020-02-02", "INVALID_PARAMS"),
            ("deadline", 1767225600, "INVALID_PARAMS"),
            ("deadline", "0001-01-01T00:00:00+23:59", "INVALID_PARAMS"),
            ("deadline", "0001-01-01T00:00:00Z", "INVALID_PARAMS"),
            ("deadline", "9999-12-31T23:59:59-23:59", "INVALID_PARAMS"),
            ("deadline", ["2026-12-31"], "INVALID_PARAMS"),
            ("title", "", "INVALID_PARAMS"),
            ("title", "x" * 201, "INVALID_PARAMS"),
            ("body", "x" * 10_001, "INVALID_PARAMS"),
            ("body", None, "INVALID_PARAMS"),
            ("state", "passed", "INVALID_PARAMS"),
            ("version", 9, "INVALID_PARAMS"),
            ("issuer", "ceo", "INVALID_PARAMS"),
            ("supersedes", "CON-nothing", "NOT_FOUND"),
            ("amount", 5, "INVALID_PARAMS"),
            ("amount", True, "INVALID_PARAMS"),
            ("amount", -1, "INVALID_PARAMS"),
            ("grants", [{"from": "frontend_worker", "to": "ceo"}], "CONTACT_DENIED"),
            ("grants", [{"from": "backend_worker", "to": "frontend_worker"}], "CONTACT_DENIED"),
            ("grants", [{"from": "backend_worker", "to": "board"}], "CONTACT_DENIED"),
            ("grants", [{"from": "backend_worker", "to": "nobody"}], "RECIPIENT_UNKNOWN"),
            ("grants", [{"from": "backend_worker"}], "INVALID_PARAMS"),
            ("grants", "all", "INVALID_PARAMS"),
        ],
    )
    def test_terms_that_no_contract_has(self, nexus, field, value, code):
        self.refused(nexus, code, "it_manager", "create_contract", to="backend_worker",
                     **{**WORK, field: value})  # fmt: skip

    @pytest.mark.parametrize("types", [[], ["info"], ["report", "requirement_clarification"]])
    def test_a_grant_of_more_than_the_channel_carries(self, nexus, types):
        grant = {"from": "product_manager", "to": "frontend_worker", "types": types}
        self.refused(nexus, "MAIL_TYPE_DENIED", "it_manager", "create_contract",
                     to="frontend_worker", grants=[grant], **WORK)  # fmt: skip

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("environment", "Production"),
            ("environment", "production "),
            ("environment", "production\n"),
            ("artifact", "a b"),
            ("expires_at", "2020-01-01T00:00:00Z"),
            ("expires_at", "soon"),
            ("expires_at", None),
            ("reason", ""),
        ],
    )
    def test_an_approval_of_nothing_exact(self, nexus, field, value):
        whole = {"environment": "production", "artifact": DIGEST, "reason": "x",
                 "expires_at": "2036-01-01T00:00:00Z", field: value}  # fmt: skip
        self.refused(nexus, "INVALID_PARAMS", "it_manager", "approve_deployment",
                     to="devops_worker", **whole)  # fmt: skip

    def test_an_approval_for_oneself(self, nexus):
        self.refused(nexus, "LEVEL_DENIED", "it_manager", "approve_deployment", to="it_manager",
                     environment="production", artifact=DIGEST, reason="x",
                     expires_at="2036-01-01T00:00:00Z")  # fmt: skip
        self.refused(nexus, "TOOL_NOT_BOUND", "devops_worker", "approve_deployment",
                     to="devops_worker")  # fmt: skip

    def test_opening_coding_for_oneself(self, nexus):
        contract = issue(nexus)
        self.refused(nexus, "INVALID_PARAMS", "backend_worker", "accept_contract",
                     contract_id=contract, mode="coding")  # fmt: skip
        nexus.call("backend_worker", "accept_contract", contract_id=contract)
        assert nexus.caller("backend_worker").session.mode is ToolMode.CHAT_SAFE

    @pytest.mark.parametrize("cursor", ["x", "%%%", "AAAA====", "../..", "ü", "a" * 201])
    def test_a_cursor_of_ones_own_making(self, nexus, cursor):
        self.refused(nexus, "INVALID_PARAMS", "it_manager", "list_contracts", cursor=cursor)

    @pytest.mark.parametrize("limit", [0, -1, 201, "5", True, 2**70])
    def test_a_limit_out_of_bounds(self, nexus, limit):
        self.refused(nexus, "INVALID_PARAMS", "it_manager", "list_contracts", limit=limit)


class TestTenants:
    @pytest.mark.parametrize(
        ("tool", "params"),
        [
            ("accept_contract", {}),
            ("close_contract", {"outcome": "cancelled", "reason": "x"}),
        ],
    )
    def test_another_organisations_contract_is_not_there(self, nexus, tool, params):
        contract = issue(nexus)
        other = load_company("constitution")
        theirs = other.call("conductor", tool, contract_id=contract, **params)
        none = other.call("conductor", tool, contract_id="CON-nothing", **params)
        assert theirs.status == 404
        assert {**theirs.body, "request_id": 0} == {**none.body, "request_id": 0}
        assert other.call("conductor", "list_contracts").result["contracts"] == []
        assert row(contract).state == "pending"

    def test_a_predecessor_of_another_organisation_is_not_there(self, nexus):
        other = load_company("constitution")
        assert other.policy.organisation_id != nexus.policy.organisation_id
        answer = create(nexus, supersedes="CON-20260101000000000000-abcd")
        assert answer.code == "NOT_FOUND"


class TestQueries:
    """What each call costs the database, authentication and policy (one) included."""

    def count(self, nexus, handle, tool, **params):
        nexus.caller(handle)
        with CaptureQueriesContext(connection) as seen:
            assert nexus.call(handle, tool, **params).status == 200
        return [
            q["sql"] for q in seen.captured_queries
            if not q["sql"].startswith(("SAVEPOINT", "RELEASE"))
        ]  # fmt: skip

    def test_of_every_tool(self, nexus):
        made = [at_state(nexus, state, workspace_scope=["src/"]) for state in (
            "pending", "in_progress", "review")]  # fmt: skip
        coding = issue(nexus, coding=True)
        judged = at_state(nexus, "review", workspace_scope=["src/"])
        judge(nexus, judged)
        calls = [
            (7, "it_manager", "create_contract", {"to": "backend_worker", **WORK}),
            (7, "backend_worker", "accept_contract", {"contract_id": made[0]}),
            (10, "backend_worker", "accept_contract", {"contract_id": coding}),
            (11, "backend_worker", "submit_report",
             {"contract_id": made[1], "kind": "completion", "title": "x", "body": "x"}),
            (8, "qa_worker", "write_verdict",
             {"contract_id": made[2], "verdict": "FAIL", "evidence": "x"}),
            (8, "it_manager", "close_contract",
             {"contract_id": judged, "outcome": "passed", "reason": "x"}),
            (5, "backend_worker", "read_contract", {"contract_id": made[0]}),
            (2, "it_manager", "list_contracts", {}),
            (3, "it_manager", "request_budget", {"amount": 5, "purpose": "x"}),
        ]  # fmt: skip
        spent = {}
        nexus.count_ahead()
        for exactly, handle, tool, params in calls:
            queries = self.count(nexus, handle, tool, **params)
            spent[tool, exactly] = len(queries)
        assert {key: n for key, n in spent.items() if n != key[1]} == {}

    def test_a_list_costs_the_same_however_long_it_is(self, nexus):
        few = len(self.count(nexus, "it_manager", "list_contracts"))
        for _ in range(5):
            issue(nexus)
        approve(nexus)
        assert len(self.count(nexus, "it_manager", "list_contracts")) == few


def test_a_report_on_a_cancelled_contract_is_told_what_is_left(nexus):
    contract = at_state(nexus, "in_progress")
    nexus.call("it_manager", "close_contract", contract_id=contract, outcome="cancelled",
               reason="no longer wanted")  # fmt: skip
    answer = nexus.call("backend_worker", "submit_report", contract_id=contract,
                        kind="completion", title="x", body="x")  # fmt: skip
    assert answer.code == "INVALID_TRANSITION"
    assert "supersedes" in answer.body["next_action"]
