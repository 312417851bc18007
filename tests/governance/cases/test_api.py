"""Cases from outside, over HTTP."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from core.decision import Code, Denied
from governance.cases import rules, services
from governance.cases.by_people.services import open_case_as_person
from governance.models import Artifact, Case, Violation
from ledger.models import Event
from mailroom.escalations import answers
from mailroom.models import Escalation, OutgoingNotice
from orgchart.models import Agent, Organisation
from tests.company import load_company
from tests.governance.cases.world import CONTENT, EVIDENCE, Play
from toolbox.quotas import stored

pytestmark = pytest.mark.django_db
OFFICE_HOLDERS = ("analyst", "planner", "implementer", "reviewer", "tester", "conductor")


@pytest.fixture
def play(company):
    return Play(company)


class TestCasesOfOneOpener:
    """Spec: constitution 40: each pause is a notice to people, and each end of one needs a code."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(rules, "MOST_OPENED", 2)

    @staticmethod
    def open(company, *, ago=0):
        """The answer to an opening so many minutes ago."""
        now = timezone.now() - timedelta(minutes=ago)
        caller = company.caller("analyst")
        return services.open_case(title="A case", request="Say ok", caller=caller, now=now)

    def test_have_a_limit_until_they_end(self, company):
        paused, _ = self.open(company, ago=300), self.open(company, ago=200)
        company.call(
            "analyst", "case_submit", case_id=paused["case_id"], stage="ANALYSIS",
            content=CONTENT["ANALYSIS"], outcome="NON_VERIFIABLE",
        )  # fmt: skip
        with pytest.raises(Denied) as refused:
            self.open(company)
        assert refused.value.deny.code is Code.QUOTA_EXCEEDED
        assert Case.objects.count() == 2
        company.call(
            "conductor", "case_decide", case_id=paused["case_id"], decision="STOP", reason="r"
        )
        self.open(company)

    def test_have_a_limit_within_an_hour_though_they_end(self, company):
        for minutes in (61, 59, 1):
            with pytest.MonkeyPatch.context() as many:
                many.setattr(rules, "MOST_OPENED", 9)
                case = self.open(company, ago=minutes)
            Case.objects.filter(id=case["case_id"]).update(state="stopped")
        with pytest.raises(Denied) as refused:
            self.open(company)
        assert refused.value.deny.code is Code.QUOTA_EXCEEDED

    def test_go_on_where_the_clock_was_set_back(self, company):
        for minutes in (-1000, -2000):
            case = self.open(company, ago=minutes)
            Case.objects.filter(id=case["case_id"]).update(state="stopped")
        self.open(company)

    def test_do_not_include_those_of_people(self, company):
        now = timezone.now()
        for _ in range(3):
            open_case_as_person(title="A", request="B", person=company.person("Board"), now=now)
        self.open(company)


class TestACase:
    def test_is_delivered_after_review_and_test(self, play):
        play.to("VERDICT")
        assert play.decide("DELIVER").result == {
            "case_id": play.id,
            "stage": "VERDICT",
            "round": 1,
            "state": "delivered",
        }

    def test_goes_back_to_implementation_after_a_rejection_and_a_failed_test(self, play):
        play.to("REVIEW")
        assert play.submit("REVIEW", "REJECTED").result["round"] == 2
        assert play.at == ("open", "VERDICT", 2)
        assert play.decide("CONTINUE").result["stage"] == "IMPLEMENTATION"
        play.submit("IMPLEMENTATION")
        play.submit("REVIEW", "APPROVED")
        assert play.submit("TEST", "FAILED").result["round"] == 3
        assert play.decide("DELIVER").code == "INVALID_TRANSITION"
        play.decide("CONTINUE")
        play.submit("IMPLEMENTATION")
        play.submit("REVIEW", "APPROVED")
        play.submit("TEST", "PASSED")
        assert play.decide("DELIVER").result["state"] == "delivered"
        rounds = Artifact.objects.filter(case_id=play.id, stage="IMPLEMENTATION")
        assert sorted(rounds.values_list("round", flat=True)) == [1, 2, 3]

    def test_pauses_when_its_rounds_are_used_up(self, play):
        play.to("IMPLEMENTATION")
        for _ in range(2):
            play.submit("IMPLEMENTATION")
            play.submit("REVIEW", "REJECTED")
            play.decide("CONTINUE")
        play.submit("IMPLEMENTATION")
        assert play.submit("REVIEW", "REJECTED").result["state"] == "paused"
        assert play.row.paused_by == "ITERATION_OVERFLOW"
        assert play.decide("CONTINUE").code == "INVALID_TRANSITION"
        assert play.decide("STOP").result["state"] == "stopped"

    @pytest.mark.parametrize(
        ("stage", "outcome"), [("ANALYSIS", "NON_VERIFIABLE"), ("TEST", "EVIDENCE_UNAVAILABLE")]
    )
    def test_pauses_and_notifies_people_at_a_mandatory_stop(self, play, stage, outcome):
        change_settings_of(play.company, board_email="board@example.org")
        play.to(stage)
        assert play.submit(stage, outcome).result["state"] == "paused"
        assert play.row.paused_by == outcome
        notice = OutgoingNotice.objects.get()
        assert notice.payload["type"] == "case.paused"
        assert notice.payload["data"]["trigger_condition"] == outcome

    def test_is_not_delivered_before_anything_was_tested(self, play):
        play.to("TEST")
        assert play.decide("DELIVER").code == "STAGE_DENIED"
        assert play.at == ("paused", "VERDICT", 2)


def change_settings_of(company, **values):
    company.organisation.settings = {**company.organisation.settings, **values}
    company.organisation.save()
    from orgchart.policy_cache import POLICIES

    company.organisation.policy_version += 1
    company.organisation.save()
    POLICIES.clear()


class TestEvidence:
    def test_is_needed_for_every_task(self, play):
        play.to("TASKS")
        tasks = [{"id": t, "task": "x", "verify_by": "y"} for t in ("T1", "T2")]
        play.submit("TASKS", content={"tasks": tasks})
        play.submit("IMPLEMENTATION")
        play.submit("REVIEW", "APPROVED")
        assert play.submit("TEST", "PASSED").code == "INVALID_PARAMS"
        assert play.submit("TEST", "PASSED", evidence=[]).code == "INVALID_PARAMS"
        failed = [{**EVIDENCE[0], "exit_status": 1}, {**EVIDENCE[0], "task": "T2"}]
        assert play.submit("TEST", "PASSED", evidence=failed).code == "INVALID_PARAMS"
        both = [EVIDENCE[0], {**EVIDENCE[0], "task": "T2"}]
        assert play.submit("TEST", "PASSED", evidence=both).status == 200

    def test_names_the_digest_of_the_output(self, play):
        play.to("TEST")
        wrong = [{**EVIDENCE[0], "output_sha256": "abc"}]
        assert play.submit("TEST", "PASSED", evidence=wrong).code == "INVALID_PARAMS"


class TestTheForm:
    @pytest.mark.parametrize(
        ("stage", "content"),
        [
            ("ANALYSIS", {"what": "W", "why": "Y", "constraints": "C", "solution": "S"}),
            ("ANALYSIS", {"what": "W"}),
            ("TASKS", {"tasks": []}),
            ("TASKS", {"tasks": [{"id": "T1", "task": "x", "verify_by": "y", "steps": "z"}]}),
            ("TASKS", {"tasks": [{"id": "T1", "task": "x", "verify_by": "y"}] * 2}),
            ("IMPLEMENTATION", {"artifacts": [], "motive": "because"}),
            ("IMPLEMENTATION", {"artifacts": [{"path": "a", "sha256": "0" * 64, "body": "b"}]}),
            ("REVIEW", {"violations": [], "advice": "do it so"}),
            ("REVIEW", {"violations": [{"task": "T9", "article": "2"}]}),
            ("TEST", {"explanation": "x"}),
        ],
    )
    def test_has_no_field_for_anything_else(self, play, stage, content):
        play.to(stage)
        outcome = {"REVIEW": "REJECTED", "TEST": "FAILED"}.get(stage)
        assert play.submit(stage, outcome, content=content).code == "INVALID_PARAMS"
        assert play.at == ("open", stage, 1)
        assert not Violation.objects.exists()

    @pytest.mark.parametrize("outcome", ["PASSED", "OK", "NON_VERIFIABLE", None])
    def test_takes_the_outcomes_of_its_stage_only(self, play, outcome):
        play.to("REVIEW")
        assert play.submit("REVIEW", outcome).code == "INVALID_PARAMS"

    def test_refuses_an_approval_that_names_violations(self, play):
        play.to("REVIEW")
        content = {"violations": [{"task": "T1", "article": "2"}]}
        assert play.submit("REVIEW", "APPROVED", content=content).code == "INVALID_PARAMS"


class TestSignalsThatObligeTheReview:
    def test_an_unverifiable_task_is_rejected(self, play):
        play.to("TASKS")
        play.submit("TASKS", content={"tasks": [{"id": "T1", "task": "x", "verify_by": " "}]})
        play.submit("IMPLEMENTATION")
        assert play.submit("REVIEW", "APPROVED").code == "INVALID_TRANSITION"
        assert play.submit("REVIEW", "REJECTED").result["round"] == 2

    @pytest.mark.parametrize("path", ["../etc/passwd", ".env", "deploy/id_rsa", "/abs"])
    def test_a_change_beyond_authority_is_rejected(self, play, path):
        from tests.governance.cases.world import BODY, SHA

        play.to("IMPLEMENTATION")
        made = {"artifacts": [{"path": path, "sha256": SHA, "body": BODY}]}
        assert play.submit("IMPLEMENTATION", content=made).status == 200
        assert play.submit("REVIEW", "APPROVED").code == "INVALID_TRANSITION"


class TestAViolation:
    def test_aborts_the_round_and_is_kept_although_refused(self, play):
        play.to("REVIEW")
        assert play.submit("REVIEW", "APPROVED", by="implementer").code == "STAGE_DENIED"
        assert play.at == ("paused", "VERDICT", 2)
        assert play.row.paused_by == "STRUCTURAL_VIOLATION"
        kept = Violation.objects.get()
        assert (kept.agent_name, kept.fault, kept.stage, kept.round) == (
            "implementer",
            "EXCEEDED_AUTHORITY",
            "REVIEW",
            1,
        )
        denied = Event.objects.filter(action="tool.denied", actor="agent:implementer")
        assert denied.count() == 1
        assert Event.objects.filter(action="case.violated").count() == 1

    def test_is_to_ask_for_an_illegal_input(self, play):
        play.to("IMPLEMENTATION")
        assert play.inputs("implementer", names=["ANALYSIS"]).code == "INPUT_DENIED"
        assert play.row.paused_by == "STRUCTURAL_VIOLATION"
        assert Violation.objects.get().fault == "ILLEGAL_INPUT"

    def test_is_to_rule_without_being_the_conductor(self, play):
        play.to("VERDICT")
        assert play.decide("DELIVER", by="implementer").code == "STAGE_DENIED"
        assert play.row.state == "paused"
        assert play.decide("DELIVER").code == "INVALID_TRANSITION"
        assert play.decide("STOP").result["state"] == "stopped"

    def test_is_not_a_late_repetition_of_ones_own_stage(self, play):
        play.to("REVIEW")
        assert play.submit("IMPLEMENTATION").code == "STAGE_DENIED"
        assert play.at == ("open", "REVIEW", 1)
        play.submit("REVIEW", "REJECTED")
        assert play.submit("REVIEW", "REJECTED").code == "STAGE_DENIED"
        assert play.at == ("open", "VERDICT", 2)
        assert not Violation.objects.exists()

    def test_explaining_one_leaves_nothing(self, play):
        play.to("REVIEW")
        asked = {"tool": "case_decide", "params": {
            "case_id": play.id, "decision": "STOP", "reason": "x"}}  # fmt: skip
        told = play.company.post("/api/v1/explain", asked, "planner")
        assert told.body["error_code"] == "STAGE_DENIED"
        assert play.at == ("open", "REVIEW", 1)

    def test_opening_by_another_office_is_refused(self, company):
        for handle in OFFICE_HOLDERS[1:]:
            answer = company.call(handle, "case_open", title="x", request="y")
            assert answer.code == "STAGE_DENIED"

    @pytest.mark.parametrize("handle", OFFICE_HOLDERS)
    def test_opening_is_refused_while_an_office_is_vacant(self, company, handle):
        """Also to people: a case that cannot end is not begun (Spec: constitution 33)."""
        company.key("analyst")
        Agent.objects.filter(handle=handle).update(active=False)
        Organisation.objects.update(policy_version=F("policy_version") + 1)
        message = f"no active agent holds these offices: {handle.upper()}"
        if handle != "analyst":
            answer = company.call("analyst", "case_open", title="x", request="y")
            assert answer.code == "INVALID_TRANSITION"
            assert answer.body["message"] == message
        with pytest.raises(Denied) as refusal:
            open_case_as_person(
                title="x", request="y", person=company.person("Board"), now=timezone.now()
            )
        assert refusal.value.deny.message == message
        assert not Case.objects.exists()


class TestTools:
    def test_are_bound_to_the_offices_and_to_no_other(self, company):
        nexus = load_company("nexus")
        tools = {"case_open", "case_submit", "case_inputs", "case_list", "case_decide"}
        for handle in company.policy.agents:
            listed = {t["name"] for t in company.get("/api/v1/tools", handle).body["tools"]}
            assert tools <= listed
        listed = {t["name"] for t in nexus.get("/api/v1/tools", "ceo").body["tools"]}
        assert not tools & listed
        assert nexus.call("ceo", "case_list").code == "TOOL_NOT_BOUND"


class TestAnotherOrganisationsCase:
    def test_does_not_exist(self, play):
        assert play.company.call("analyst", "case_inputs", case_id="CASE-1").code == "NOT_FOUND"


class TestCaseInputs:
    def test_count_as_a_row_each_as_their_event_stays(self, play, settings):
        settings.NEXUS_ORGANISATION_ROWS = stored.MARGIN["rows_margin"]  # counted one by one
        organisation = play.company.organisation.id
        _, before = stored.stored_by(organisation)
        for _ in range(3):
            assert play.inputs("analyst").status == 200
        assert stored.stored_by(organisation)[1] == before + 3
        settings.NEXUS_ORGANISATION_ROWS = before + 3
        assert play.inputs("analyst").code == "QUOTA_EXCEEDED"
        assert Event.objects.filter(action="case.inputs_read").count() == 3


class TestCaseList:
    def test_pages_without_content(self, company):
        plays = [Play(company, request="SECRET") for _ in range(3)]
        first = company.call("planner", "case_list", limit=2).result
        assert [each["case_id"] for each in first["cases"]] == [p.id for p in plays[:0:-1]]
        last = company.call("planner", "case_list", limit=2, cursor=first["next_cursor"]).result
        assert [each["case_id"] for each in last["cases"]] == [plays[0].id]
        assert last["next_cursor"] is None
        assert "SECRET" not in str(first)
        assert company.call("analyst", "case_list").result["cases"][0]["your_turn"]
        assert not company.call("planner", "case_list").result["cases"][0]["your_turn"]


class TestTheWayDown:
    @pytest.mark.parametrize("office", ["analyst", "planner", "implementer", "reviewer", "tester"])
    def test_is_closed_the_conductor_writes_to_no_office(self, company, office):
        mail = {"to": office, "type": "info", "subject": "The REVIEW", "body": "Rename x."}
        assert company.call("conductor", "send_mail", **mail).code == "TOOL_NOT_BOUND"
        up = company.call(office, "escalate", subject="Help", body="It does not build.")
        assert up.status == 200
        assert company.call("conductor", "send_mail", **mail).code == "TOOL_NOT_BOUND"


class TestTheWayUp:
    @pytest.mark.parametrize("office", ["analyst", "planner", "implementer", "reviewer", "tester"])
    def test_ends_with_an_answer_of_people_only(self, company, office):
        up = company.call(office, "escalate", subject="Help", body="It does not build.").result
        for tool, params in [
            ("send_mail", {"to": office, "type": "info", "subject": "a", "body": "Rename x.",
                           "reply_to": up["mail_id"]}),
            ("escalate", {"subject": "a", "body": "b", "follows": up["escalation_id"]}),
            ("generate_contract", {"to": office, "title": "a", "body": "Rename x."}),
            ("task_create", {"subject": "Rename x", "description": "b", "requiredRole": office}),
        ]:  # fmt: skip
            code = "CONTACT_DENIED" if tool == "task_create" else "TOOL_NOT_BOUND"
            assert company.call("conductor", tool, **params).code == code, tool
        row = Escalation.objects.get()
        assert row.state == "open"
        answers.answer_as_person(
            escalation_id=row.id, text="The machine is back.", expected_version=row.version,
            person=company.person("Board"), now=timezone.now(),
        )  # fmt: skip
        assert Escalation.objects.get().state == "answered"
        (mail,) = company.call(office, "read_inbox").result["mails"]
        said = company.call(office, "read_mail", mail_id=mail["mail_id"]).result["body"]
        assert "The machine is back." in said


class TestVerifiable:
    @pytest.mark.parametrize("verify_by", ["", "   ", "\u200b", "\u2060\ufeff", "...", "\u3164"])
    def test_a_task_needs_words_that_a_person_can_read(self, company, verify_by):
        play = Play(company).to("TASKS")
        play.submit("TASKS", content={"tasks": [{"id": "T1", "task": "x", "verify_by": verify_by}]})
        play.submit("IMPLEMENTATION")
        assert play.submit("REVIEW", "APPROVED").code == "INVALID_TRANSITION"
        assert play.at == ("open", "REVIEW", 1)
