"""The life of a contract on PostgreSQL: every move, every guard, every trace."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from contracts import queries, scopes, store
from contracts.authority import opens_rights
from contracts.issuing import rules as issuing
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from contracts.models import Contract, Report, Verdict
from contracts.reassignment import reassign_contracts
from contracts.session_contract import OPENS_RIGHTS, find_working_contract
from contracts.vocabulary import ContractOutcome, ContractSide, ContractState, ReportKind
from core.decision import Code, Denied
from core.machines import UndeclaredTransition
from documents.models import Document
from governance.interventions.models import Intervention
from ledger.models import Event
from mailroom.models import ContactGrant, Mail, MailRejection
from mailroom.references import require_own
from orgchart.models import Agent, Organisation
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.vocabulary import ToolMode
from tests.contracts.world import (
    accept,
    approve,
    at_state,
    close,
    issue,
    judge,
    now,
    refusal,
    row,
    submit,
    submit_by_mail,
)
from tests.decisions import denied as refused
from toolbox.models import ModeGrant, Session
from toolbox.modes import close_mode, close_modes_of_people, open_mode

pytestmark = pytest.mark.django_db


def events(contract_id):
    found = Event.objects.filter(subject=f"contract:{contract_id}").order_by("seq")
    return [event.action for event in found]


def mails(**fields):
    return list(Mail.objects.filter(**fields).order_by("id"))


class TestIssueContract:
    def test_leaves_a_pending_contract_and_its_notice(self, nexus):
        contract = row(
            issue(nexus, deadline=now() + timedelta(days=1), assigned_branch="feature/login")
        )
        assert (contract.state, contract.version, contract.kind) == ("pending", 1, "work")
        assert contract.id.startswith("CON-")
        assert len(contract.id) <= 32
        notice = contract.notice
        assert (notice.from_agent, notice.to_agent, notice.mail_type) == (
            "it_manager", "backend_worker", "contract",
        )  # fmt: skip
        assert notice.contract_ref == contract.id
        assert notice.body.startswith("Build it.")
        assert "assigned_branch: feature/login" in notice.body
        assert events(contract.id) == ["contract.issued"]

    def test_shows_in_the_assignees_event_stream(self, nexus):
        contract = row(issue(nexus))
        event = Event.objects.get(action="contract.issued")
        assert (event.kind, event.for_agent_id) == ("contract", contract.assignee_id)

    def test_keeps_a_long_text_whole_and_its_notice_within_a_mails_size(self, nexus):
        contract = row(issue(nexus, body="x" * 10_000))
        assert contract.notice.body == contract.body == "x" * 10_000

    def test_travels_by_contract_rules_where_the_mail_channel_is_closed(self, nexus):
        contract = row(issue(nexus, "frontend_worker", by="product_manager"))
        assert contract.notice.to_agent == "frontend_worker"

    def test_resolves_an_old_name(self, nexus):
        assert row(issue(nexus, "backend_dev")).assignee.handle == "backend_worker"

    def test_lists_each_folder_once(self, nexus):
        assert row(issue(nexus, workspace_scope=["src/", "src/"])).workspace_scope == ["src/"]

    @pytest.mark.parametrize(
        ("by", "to", "code"),
        [
            ("it_manager", "ceo", Code.LEVEL_DENIED),
            ("it_manager", "it_manager", Code.LEVEL_DENIED),
            ("it_manager", "hr_manager", Code.LEVEL_DENIED),
            ("it_manager", "research_worker", Code.CONTACT_DENIED),
            ("it_manager", "board", Code.CONTACT_DENIED),
            ("it_manager", "nobody", Code.RECIPIENT_UNKNOWN),
            ("hr_manager", "backend_worker", Code.CONTACT_DENIED),
        ],
    )
    def test_a_refusal_leaves_no_contract_no_mail_and_a_rejection_to_write(
        self, nexus, by, to, code
    ):
        with pytest.raises(Denied) as denied:
            issue(nexus, to, by=by)
        assert denied.value.deny.code == code
        assert denied.value.on_refused is not None
        assert not Mail.objects.filter(mail_type="contract").exists()

    def test_refuses_who_was_deactivated_since_the_policy_was_read(self, nexus, monkeypatch):
        caller = nexus.caller("it_manager")
        monkeypatch.setattr(nexus, "caller", lambda handle: caller)
        agent = nexus.agent("backend_worker")
        agent.active = False
        agent.save()
        assert refusal(issue, nexus).code is Code.RECIPIENT_INACTIVE

    @pytest.mark.parametrize(
        ("left", "code"),
        [("no mode", Code.MODE_DENIED), ("no tool", Code.TOOL_NOT_BOUND), ("", None)],
    )
    def test_is_decided_on_the_policy_of_its_moment(self, nexus, monkeypatch, left, code):
        """Spec: contracts 5: not on the one that was read with the caller's key."""
        caller = nexus.caller("it_manager")
        monkeypatch.setattr(nexus, "caller", lambda handle: caller)
        if left == "no mode":
            nexus.organisation.settings = {"enabled_modes": ["chat_safe"]}
        if left == "no tool":
            role = nexus.agent("it_manager").role
            role.tools.remove("create_contract")
            role.save()
        nexus.organisation.policy_version += 1
        nexus.organisation.save()
        if code:
            assert refusal(issue, nexus, coding=True).code is code
        else:
            assert row(issue(nexus, coding=True)).state == "pending"

    def test_coding_only_where_the_organisation_enables_it(self, nexus):
        nexus.organisation.settings = {"enabled_modes": ["chat_safe"]}
        nexus.organisation.policy_version += 1
        nexus.organisation.save()
        assert refusal(issue, nexus, coding=True).code is Code.MODE_DENIED

    def test_an_amount_belongs_to_a_budget_only(self, nexus):
        assert refusal(issue, nexus, amount=5, currency="USD").code is Code.INVALID_PARAMS

    def test_takes_another_id_when_one_is_taken(self, nexus, monkeypatch):
        first = issue(nexus)
        ids = iter([first, first, "CON-20260101000000000000-abcd"])
        monkeypatch.setattr("contracts.issuing.services.timed_id", lambda *_: next(ids))
        assert issue(nexus) == "CON-20260101000000000000-abcd"
        assert len(mails(mail_type="contract")) == 2


class TestOpenContracts:
    """Spec: contracts 59."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(issuing, "MOST_OPEN", 2)

    def test_of_one_issuer_have_a_limit(self, nexus):
        first, _ = issue(nexus), issue(nexus, "qa_worker")
        deny = refusal(issue, nexus, "devops_worker")
        assert (deny.code, deny.details["limit"]) == (Code.QUOTA_EXCEEDED, 2)
        issue(nexus, "research_worker", by="product_manager")
        close(nexus, first, "cancelled")
        issue(nexus, "devops_worker")

    def test_do_not_include_approvals(self, nexus):
        approve(nexus)
        issue(nexus)
        issue(nexus)
        approve(nexus, artifact="sha256:" + "b" * 64)


class TestSupersedes:
    def test_follows_a_closed_contract_of_the_same_issuer(self, nexus):
        old = at_state(nexus, ContractState.FAILED)
        assert row(issue(nexus, supersedes=old)).supersedes_id == old

    @pytest.mark.parametrize(
        "state", [ContractState.PENDING, ContractState.IN_PROGRESS, ContractState.REVIEW]
    )
    def test_refuses_one_that_is_still_open(self, nexus, state):
        old = at_state(nexus, state)
        assert refusal(issue, nexus, supersedes=old).code is Code.INVALID_PARAMS

    def test_answers_the_same_for_anothers_and_for_none(self, nexus):
        other = issue(nexus, "research_worker", by="product_manager")
        close(nexus, other, "cancelled", by="product_manager")
        theirs = refusal(issue, nexus, supersedes=other)
        none = refusal(issue, nexus, supersedes="CON-nothing")
        assert theirs == none
        assert theirs.code is Code.NOT_FOUND


class TestAcceptContract:
    def test_opens_the_work_for_its_assignee(self, nexus):
        contract_id = issue(nexus)
        assert accept(nexus, contract_id) == {"state": "in_progress", "version": 2}
        assert row(contract_id).accepted_at is not None
        assert events(contract_id)[-1] == "contract.accepted"

    def test_tells_the_issuers_stream(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        event = Event.objects.get(action="contract.accepted")
        assert event.for_agent_id == row(contract_id).issuer_id
        assert event.details["from_state"] == "pending"

    @pytest.mark.parametrize(
        ("by", "code"),
        [
            ("it_manager", Code.NOT_YOURS),
            ("frontend_worker", Code.NOT_FOUND),
            ("ceo", Code.NOT_YOURS),
            ("qa_worker", Code.NOT_FOUND),
        ],
    )
    def test_refuses_anyone_else(self, nexus, by, code):
        contract_id = issue(nexus, workspace_scope=["src/"])
        assert refusal(accept, nexus, contract_id, by=by).code == code
        assert row(contract_id).state == "pending"

    @pytest.mark.parametrize("state", [s for s in ContractState if s is not ContractState.PENDING])
    def test_refuses_any_other_state(self, nexus, state):
        contract_id = at_state(nexus, state)
        found = refusal(accept, nexus, contract_id)
        assert found.code is Code.INVALID_TRANSITION
        assert found.details["state"] == state

    def test_changes_nothing_when_the_version_is_stale(self, nexus):
        contract_id = issue(nexus)
        found = refusal(accept, nexus, contract_id, version=2)
        assert found.code is Code.VERSION_MISMATCH
        assert found.details == {"expected": 2, "current": 1}
        assert (row(contract_id).state, events(contract_id)) == ("pending", ["contract.issued"])

    def test_opens_coding_for_the_accepting_session_when_its_issuer_said_so(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        session = nexus.caller("backend_worker").session
        assert (session.mode, session.contract) == ("coding", contract_id)

    def test_opens_nothing_otherwise(self, nexus):
        at_state(nexus, ContractState.IN_PROGRESS)
        assert nexus.caller("backend_worker").session.mode == "chat_safe"
        assert not ModeGrant.objects.exists()

    def test_is_refused_whole_where_coding_is_no_longer_enabled(self, nexus):
        contract_id = issue(nexus, coding=True)
        nexus.organisation.settings = {"enabled_modes": ["chat_safe"]}
        nexus.organisation.policy_version += 1
        nexus.organisation.save()
        assert refusal(accept, nexus, contract_id).code is Code.MODE_DENIED
        assert row(contract_id).state == "pending"


class TestSubmitReport:
    def test_completion_hands_the_work_in(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        done = submit(nexus, contract_id)
        assert (done["state"], done["version"]) == ("review", 3)
        mail = Mail.objects.get(id=done["mail_id"])
        assert (mail.mail_type, mail.to_agent) == ("report", "it_manager")
        assert mail.contract_ref == contract_id
        report = Report.objects.get(id=done["report_id"])
        assert (report.kind, report.report_type) == ("completion", "completion")
        assert events(contract_id)[-1] == "contract.submitted"

    def test_progress_moves_nothing(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        for _ in range(2):
            done = submit(nexus, contract_id, kind=ReportKind.PROGRESS)
            assert (done["state"], done["version"]) == ("in_progress", 2)
        assert events(contract_id)[-2:] == ["contract.reported"] * 2

    def test_is_filed_where_its_manager_reads_it(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW)
        filed = Document.objects.get(contract_ref=contract_id)
        assert (filed.department, filed.report_type) == ("tech", "completion")

    @pytest.mark.parametrize("kind", ReportKind)
    @pytest.mark.parametrize(
        "state", [s for s in ContractState if s is not ContractState.IN_PROGRESS]
    )
    def test_refuses_any_other_state(self, nexus, state, kind):
        contract_id = at_state(nexus, state)
        reports = Report.objects.count()
        assert refusal(submit, nexus, contract_id, kind=kind).code is Code.INVALID_TRANSITION
        assert Report.objects.count() == reports

    @pytest.mark.parametrize("kind", ReportKind)
    def test_refuses_a_stale_version_whatever_it_reports(self, nexus, kind):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        found = refusal(submit, nexus, contract_id, kind=kind, version=1)
        assert found.code is Code.VERSION_MISMATCH
        assert not Mail.objects.filter(mail_type="report").exists()

    def test_refuses_anyone_else(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        assert refusal(submit, nexus, contract_id, by="it_manager").code is Code.NOT_YOURS
        assert refusal(submit, nexus, contract_id, by="devops_worker").code is Code.NOT_FOUND

    def test_ends_the_mode_that_the_contract_opened(self, nexus):
        at_state(nexus, ContractState.REVIEW, coding=True)
        assert nexus.caller("backend_worker").session.mode == "chat_safe"
        assert not ModeGrant.objects.filter(closed_at=None).exists()

    def test_leaves_the_mode_that_another_contract_opened(self, nexus):
        first = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        second = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        submit(nexus, first)
        session = nexus.caller("backend_worker").session
        assert (session.mode, session.contract) == ("coding", second)


class TestWriteVerdict:
    def test_is_not_given_on_a_later_submission_than_the_one_read(self, nexus):
        """Spec: contracts 26."""
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        read = row(contract_id).version
        close(nexus, contract_id, "rework")
        submit(nexus, contract_id)
        refused = refusal(judge, nexus, contract_id, expected_version=read)
        assert refused.code is Code.VERSION_MISMATCH
        assert not Verdict.objects.exists()
        judge(nexus, contract_id, expected_version=row(contract_id).version)

    def test_reaches_the_issuer_and_leaves_the_state_alone(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        done = judge(nexus, contract_id, "FAIL", evidence=[{"test": "a", "exit": 1}])
        mail = Mail.objects.get(id=done["mail_id"])
        assert (mail.mail_type, mail.to_agent, mail.from_agent) == (
            "verdict", "it_manager", "qa_worker",
        )  # fmt: skip
        assert "FAIL" in mail.subject
        verdict = Verdict.objects.get(id=done["verdict_id"])
        assert (verdict.finding, verdict.evidence) == ("FAIL", [{"test": "a", "exit": 1}])
        assert (row(contract_id).state, row(contract_id).version) == ("review", 3)
        assert events(contract_id)[-1] == "verdict.given"

    def test_goes_to_qas_own_manager_where_qa_may_not_write_to_the_issuer(self, nexus):
        contract_id = issue(
            nexus, "frontend_worker", by="product_manager", workspace_scope=["web/"]
        )
        accept(nexus, contract_id, by="frontend_worker")
        submit(nexus, contract_id, by="frontend_worker")
        done = judge(nexus, contract_id)
        assert Mail.objects.get(id=done["mail_id"]).to_agent == "it_manager"
        told = Mail.objects.get(to_agent="product_manager", from_agent="system")
        assert told.subject.startswith("PASS")
        assert close(nexus, contract_id, by="product_manager")["state"] == "passed"

    @pytest.mark.parametrize("state", [s for s in ContractState if s is not ContractState.REVIEW])
    def test_is_given_in_review_only(self, nexus, state):
        contract_id = at_state(nexus, state, workspace_scope=["src/"])
        verdicts = Verdict.objects.count()
        assert refusal(judge, nexus, contract_id).code is Code.INVALID_TRANSITION
        assert Verdict.objects.count() == verdicts

    def test_needs_something_to_stand_on(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        for nothing in ("", []):
            found = refusal(judge, nexus, contract_id, evidence=nothing, body=" ")
            assert found.code is Code.INVALID_PARAMS
        judge(nexus, contract_id, evidence="", body="read every line")

    def test_has_no_more_evidence_than_a_contract_is_read_with(self, nexus):
        """A contract is read with 50 verdicts: their evidence was 50 MB on one page."""
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        found = refusal(judge, nexus, contract_id, evidence=["a" * 9000] * 8)
        assert found.details == {"evidence": "more than 65536 bytes"}
        judge(nexus, contract_id, evidence=["a" * 9000] * 7)

    def test_nobody_judges_work_of_its_own(self, nexus):
        contract_id = issue(nexus, "qa_worker", workspace_scope=["tests/"])
        accept(nexus, contract_id, by="qa_worker")
        submit(nexus, contract_id, by="qa_worker")
        assert refusal(judge, nexus, contract_id).code is Code.NOT_YOURS
        assert close(nexus, contract_id)["state"] == "passed"

    def test_another_departments_work_is_not_there(self, nexus):
        contract_id = issue(
            nexus, "research_worker", by="product_manager", workspace_scope=["docs/market/"]
        )
        accept(nexus, contract_id, by="research_worker")
        submit(nexus, contract_id, by="research_worker")
        assert refusal(judge, nexus, contract_id) == refusal(judge, nexus, "CON-nothing")


class TestCloseContract:
    def test_passes_work_once_qa_has_passed_it(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        assert refusal(close, nexus, contract_id).code is Code.APPROVAL_REQUIRED
        judge(nexus, contract_id, "PASS")
        assert close(nexus, contract_id, version=3) == {"state": "passed", "version": 4}
        closed = row(contract_id)
        assert (closed.closed_by, closed.closed_reason) == ("agent:it_manager", "done")

    def test_a_fail_becomes_a_pass_only_with_a_new_submission(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id, "FAIL")
        assert refusal(judge, nexus, contract_id, "PASS").code is Code.INVALID_TRANSITION
        assert refusal(close, nexus, contract_id).code is Code.APPROVAL_REQUIRED
        assert refusal(close, nexus, contract_id, "rework", reason=" ").code is Code.INVALID_PARAMS
        assert close(nexus, contract_id, "rework")["state"] == "in_progress"
        assert refusal(judge, nexus, contract_id, "PASS").code is Code.INVALID_TRANSITION
        submit(nexus, contract_id)
        assert refusal(close, nexus, contract_id).code is Code.APPROVAL_REQUIRED
        judge(nexus, contract_id, "PASS")
        assert close(nexus, contract_id)["state"] == "passed"
        found = queries.read_contract(caller=nexus.caller("it_manager"), contract_id=contract_id)
        assert [r["submission"] for r in found["reports"]] == [2, 1]
        judged = {v["report_id"]: v["verdict"] for v in found["verdicts"]}
        assert judged == {
            found["reports"][0]["report_id"]: "PASS", found["reports"][1]["report_id"]: "FAIL",
        }  # fmt: skip

    def test_is_read_with_its_newest_reports_and_verdicts_only(self, nexus, monkeypatch):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id, "FAIL")
        close(nexus, contract_id, "rework")
        submit(nexus, contract_id, kind=ReportKind.PROGRESS)
        reader = nexus.caller("it_manager")
        assert not queries.read_contract(caller=reader, contract_id=contract_id)["truncated"]
        monkeypatch.setattr(queries, "MOST", 1)
        found = queries.read_contract(caller=reader, contract_id=contract_id)
        assert [report["kind"] for report in found["reports"]] == ["progress"]
        assert (len(found["verdicts"]), found["truncated"]) == (1, True)

    def test_a_pass_of_an_earlier_submission_is_none_of_the_next(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id, "PASS")
        close(nexus, contract_id, "rework")
        submit(nexus, contract_id)
        assert refusal(close, nexus, contract_id).code is Code.APPROVAL_REQUIRED

    def test_the_database_passes_no_failed_submission_either(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id, "FAIL")
        closing = {"closed_at": now(), "closed_by": "x", "closed_reason": "x"}
        with pytest.raises(DatabaseError, match="failed this submission"), transaction.atomic():
            Contract.objects.filter(id=contract_id).update(state="passed", version=4, **closing)

    @pytest.mark.parametrize(
        "terms",
        [{"assigned_branch": "feature/login"}, {"coding": True}, {"workspace_scope": ["src/"]}],
    )
    def test_any_code_work_needs_a_verdict(self, nexus, terms):
        contract_id = at_state(nexus, ContractState.REVIEW, **terms)
        assert refusal(close, nexus, contract_id).code is Code.APPROVAL_REQUIRED
        judge(nexus, contract_id)
        assert close(nexus, contract_id)["state"] == "passed"

    def test_rework_opens_the_mode_again_and_notifies_the_assignee(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, coding=True)
        assert nexus.caller("backend_worker").session.mode == "chat_safe"
        close(nexus, contract_id, "rework", reason="No tests.")
        session = nexus.caller("backend_worker").session
        assert (session.mode, session.contract) == ("coding", contract_id)
        notice = Mail.objects.filter(to_agent="backend_worker", from_agent="system").latest("id")
        assert "No tests." in notice.body
        assert events(contract_id)[-1] == "contract.sent_back"

    def test_rework_goes_on_without_a_mode_that_is_no_longer_enabled(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, coding=True)
        nexus.organisation.settings = {"enabled_modes": ["chat_safe"]}
        nexus.organisation.policy_version += 1
        nexus.organisation.save()
        assert close(nexus, contract_id, "rework", reason="No tests.")["state"] == "in_progress"
        assert nexus.caller("backend_worker").session.mode == "chat_safe"
        assert not ModeGrant.objects.filter(closed_at=None).exists()

    def test_takes_no_verdict_of_another_contract(self, nexus):
        judged = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        other = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, judged, "PASS")
        assert refusal(close, nexus, other).code is Code.APPROVAL_REQUIRED

    def test_fails_work_without_a_verdict(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        assert close(nexus, contract_id, "failed")["state"] == "failed"

    @pytest.mark.parametrize("outcome", ContractOutcome)
    @pytest.mark.parametrize("state", ContractState)
    def test_knows_the_moves_of_the_specification_only(self, nexus, state, outcome):
        contract_id = at_state(nexus, state)
        legal = {
            ContractOutcome.PASSED: {ContractState.REVIEW},
            ContractOutcome.FAILED: {ContractState.REVIEW},
            ContractOutcome.CANCELLED: {
                ContractState.PENDING,
                ContractState.IN_PROGRESS,
                ContractState.REVIEW,
            },
            ContractOutcome.REWORK: {ContractState.REVIEW},
        }
        before = row(contract_id).version
        if state in legal[outcome]:
            rework = outcome is ContractOutcome.REWORK
            reached = ContractState.IN_PROGRESS if rework else outcome
            assert close(nexus, contract_id, outcome)["state"] == reached
            assert events(contract_id)[-1] == f"contract.{'sent_back' if rework else outcome}"
        else:
            assert refusal(close, nexus, contract_id, outcome).code is Code.INVALID_TRANSITION
            assert row(contract_id).version == before

    @pytest.mark.parametrize("outcome", ContractOutcome)
    @pytest.mark.parametrize(
        ("by", "code"),
        [
            ("backend_worker", Code.NOT_YOURS),
            ("ceo", Code.NOT_YOURS),
            ("product_manager", Code.NOT_FOUND),
            ("qa_worker", Code.NOT_YOURS),
            ("devops_worker", Code.NOT_FOUND),
        ],
    )
    def test_nobody_closes_what_it_did_not_issue(self, nexus, by, code, outcome):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        assert refusal(close, nexus, contract_id, outcome, by=by).code == code
        assert row(contract_id).state == "review"

    def test_needs_a_reason(self, nexus):
        contract_id = issue(nexus)
        found = refusal(close, nexus, contract_id, "cancelled", reason=" \n")
        assert found.code is Code.INVALID_PARAMS

    def test_changes_nothing_when_the_version_is_stale(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW)
        for version in (1, 2, 4):
            found = refusal(close, nexus, contract_id, version=version)
            assert found.code is Code.VERSION_MISMATCH
        assert row(contract_id).state == "review"

    @pytest.mark.parametrize(
        "state", [ContractState.PENDING, ContractState.IN_PROGRESS, ContractState.REVIEW]
    )
    def test_ends_mode_and_channels_and_tells_the_assignee(self, nexus, state):
        contract_id = at_state(nexus, state, coding=True)
        close(nexus, contract_id, "cancelled", reason="no longer wanted")
        assert not ModeGrant.objects.filter(closed_at=None).exists()
        assert nexus.caller("backend_worker").session.mode == "chat_safe"
        told = Mail.objects.get(to_agent="backend_worker", from_agent="system")
        assert "no longer wanted" in told.body

    def test_a_managers_code_work_is_submitted_by_mail_and_judged(self, nexus):
        contract_id = issue(nexus, "it_manager", by="ceo", tool="generate_contract", coding=True)
        accept(nexus, contract_id, by="it_manager")
        assert refusal(close, nexus, contract_id, by="ceo").code is Code.INVALID_TRANSITION
        submit_by_mail(nexus, contract_id)
        assert nexus.caller("it_manager").session.mode == "chat_safe"
        assert refusal(close, nexus, contract_id, by="ceo").code is Code.APPROVAL_REQUIRED
        judge(nexus, contract_id)
        assert close(nexus, contract_id, by="ceo") == {"state": "passed", "version": 4}
        assert events(contract_id) == [
            "contract.issued", "contract.accepted", "contract.submitted", "verdict.given",
            "contract.passed",
        ]  # fmt: skip


class TestSubmitByMail:
    @pytest.fixture
    def work(self, nexus):
        contract_id = issue(nexus, "it_manager", by="ceo", tool="generate_contract")
        accept(nexus, contract_id, by="it_manager")
        return contract_id

    def test_is_a_report_to_the_issuer_and_a_submission(self, nexus, work):
        submit_by_mail(nexus, work)
        report = Report.objects.get()
        assert (report.kind, report.submission, report.mail.to_agent) == ("completion", 1, "ceo")
        assert row(work).state == "review"
        assert close(nexus, work, by="ceo")["state"] == "passed"

    def test_without_submits_moves_nothing(self, nexus, work):
        submit_by_mail(nexus, work, submits=False)
        assert row(work).state == "in_progress"
        assert not Report.objects.exists()

    @pytest.mark.parametrize(
        ("by", "fields", "code"),
        [
            ("it_manager", {"type": "info"}, "INVALID_PARAMS"),
            ("it_manager", {"contract_ref": None}, "INVALID_PARAMS"),
            ("it_manager", {"contract_ref": "CON-nothing"}, "NOT_FOUND"),
            ("it_manager", {"to": "backend_worker", "type": "report"}, "INVALID_PARAMS"),
            ("product_manager", {}, "NOT_FOUND"),
            ("ceo", {"to": "it_manager"}, "NOT_YOURS"),
        ],
    )
    def test_refuses_any_other_and_sends_no_mail(self, nexus, work, by, fields, code):
        found = submit_by_mail(nexus, work, by=by, **fields)
        assert found.code == code
        assert row(work).state == "in_progress"
        assert not Mail.objects.filter(subject="It is done").exists()

    def test_refuses_a_worker_that_has_submit_report(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        found = submit_by_mail(nexus, contract_id, by="backend_worker", to="it_manager")
        assert found.code == "INVALID_PARAMS"
        assert "submit_report" in found.body["next_action"]
        assert not Mail.objects.filter(subject="It is done").exists()

    def test_goes_to_the_board_for_the_top_agent(self, nexus):
        draft = ContractDraft(to="ceo", title="Grow", body="Double it.")
        board = nexus.person("Board")
        work = issue_for_board(person=board, draft=draft, now=now())["contract_id"]
        accept(nexus, work, by="ceo")
        assert submit_by_mail(nexus, work, by="ceo", to="board").code == "OK"
        assert close(nexus, work, by=board)["state"] == "passed"


class TestWhatCouldNeverBeJudged:
    @pytest.mark.parametrize(
        ("by", "to", "terms"),
        [
            ("product_manager", "research_worker", {"workspace_scope": ["src/"]}),
            ("product_manager", "research_worker", {"assigned_branch": "feature/x"}),
            ("product_manager", "research_worker", {"coding": True}),
            ("it_manager", "qa_worker", {"assigned_branch": "feature/x"}),
            ("ceo", "product_manager", {"coding": True}),
            ("ceo", "hr_manager", {"assigned_branch": "feature/x"}),
        ],
    )
    def test_is_refused_when_it_is_issued(self, nexus, by, to, terms):
        tool = "generate_contract" if by == "ceo" else "create_contract"
        found = refusal(issue, nexus, to, by=by, tool=tool, **terms)
        assert found.code is Code.SCOPE_DENIED
        assert "QA" in found.message
        assert not Contract.objects.exists()

    def test_is_no_work_on_documents(self, nexus):
        issue(nexus, "research_worker", by="product_manager", workspace_scope=["docs/market/"])

    def test_qa_gets_coding_and_folders_for_its_judging(self, nexus):
        work = issue(nexus, "qa_worker", coding=True, workspace_scope=["src/"])
        accept(nexus, work, by="qa_worker")
        submit(nexus, work, by="qa_worker")
        assert close(nexus, work)["state"] == "passed"


class TestAdvance:
    """The statement that moves a contract checks it, also where a service took no lock."""

    def test_saves_no_transition_that_the_machine_does_not_have(self, nexus):
        contract = row(issue(nexus))
        was = replace(store.contract_facts(contract, nexus.policy), state=ContractState.PASSED)
        contract.accept(at=now())
        with transaction.atomic(), pytest.raises(UndeclaredTransition):
            store.save_contract(
                contract, was, "contract.accepted",
                caller=nexus.caller("backend_worker"), now=now(), reader=BOARD_PARTY,
            )  # fmt: skip
        assert row(contract.id).state == "pending"

    def test_moves_nothing_but_what_was_decided_on(self, nexus):
        contract = row(issue(nexus))
        was = replace(store.contract_facts(contract, nexus.policy), version=7)
        contract.accept(at=now())
        with transaction.atomic():
            found = refusal(
                store.save_contract, contract, was, "contract.accepted",
                caller=nexus.caller("backend_worker"), now=now(), reader=BOARD_PARTY,
            )  # fmt: skip
        assert found.code is Code.VERSION_MISMATCH
        assert row(contract.id).state == "pending"
        assert events(contract.id) == ["contract.issued"]


class TestGrants:
    def channel(self, nexus, **fields):
        from contracts.issuing.rules import RequestedChannel

        wishes = [RequestedChannel("product_manager", "frontend_worker")] * 2
        wishes.append(RequestedChannel("frontend_worker", "pm"))
        return issue(nexus, "frontend_worker", grants=wishes, **fields)

    def test_open_with_the_contract_each_pair_once(self, nexus):
        contract_id = self.channel(nexus)
        open_ = ContactGrant.objects.filter(contract_ref=contract_id, closed_at=None)
        assert {(g.sender.handle, g.recipient.handle, tuple(g.types)) for g in open_} == {
            ("product_manager", "frontend_worker", ("requirement_clarification",)),
            ("frontend_worker", "product_manager", ("question",)),
        }
        assert row(contract_id).grants[0]["types"] == ["requirement_clarification"]

    @pytest.mark.parametrize("outcome", ["cancelled", "failed", "passed"])
    def test_close_with_the_contract(self, nexus, outcome):
        contract_id = self.channel(nexus)
        if outcome != "cancelled":
            accept(nexus, contract_id, by="frontend_worker")
            submit(nexus, contract_id, by="frontend_worker")
            assert ContactGrant.objects.filter(closed_at=None).count() == 2
        close(nexus, contract_id, outcome)
        assert not ContactGrant.objects.filter(closed_at=None).exists()

    def test_are_refused_whole(self, nexus):
        from contracts.issuing.rules import RequestedChannel

        wishes = [
            RequestedChannel("frontend_worker", "product_manager"),
            RequestedChannel("frontend_worker", "backend_worker"),
        ]
        found = refusal(issue, nexus, "frontend_worker", grants=wishes)
        assert found.code is Code.CONTACT_DENIED
        assert not ContactGrant.objects.exists()


class TestWorkScopes:
    def scopes(self, nexus, handle):
        return scopes.work_scopes(nexus.caller(handle))

    def test_are_those_of_the_contract_that_the_session_works_under(self, nexus):
        contract_id = issue(nexus, workspace_scope=["src/api", "web/"])
        assert self.scopes(nexus, "backend_worker") == ()
        accept(nexus, contract_id)
        assert self.scopes(nexus, "backend_worker") == ("src/api", "web/")
        other = issue(nexus, workspace_scope=["src/b/"])
        accept(nexus, other)
        assert self.scopes(nexus, "backend_worker") == ("src/b/",)
        submit(nexus, other)
        assert self.scopes(nexus, "backend_worker") == ("src/api", "web/")
        submit(nexus, contract_id)
        assert self.scopes(nexus, "backend_worker") == ()

    def test_are_asked_for_as_they_are_decided(self, nexus):
        """The database's condition and `opens_rights` agree on every contract."""
        every = product((True, False), ([], ["src/a/"]), ("", "feat/"))
        for number, (coding, scope, branch) in enumerate(every):
            named = {"assigned_branch": f"{branch}{number}"} if branch else {}
            row = Contract.objects.filter(
                id=issue(nexus, coding=coding, workspace_scope=scope, **named)
            )
            facts = store.contract_facts(row.get(), nexus.policy)
            assert row.filter(OPENS_RIGHTS).exists() == opens_rights(facts)

    def test_are_found_without_reading_all_contracts_of_the_agent(self, nexus):
        """Each call that works under a contract asks for it."""
        many = [issue(nexus, workspace_scope=["src/a/"]) for _ in range(30)]
        for contract_id in many:
            accept(nexus, contract_id)
        Session.objects.update(contract_ref="")
        found = find_working_contract(nexus.caller("backend_worker"))
        assert found.code == Code.CONTRACT_REQUIRED
        assert found.message.startswith("20+ contracts of yours are in progress")
        assert found.details["contracts"] == sorted(many, reverse=True)[:20]
        Session.objects.update(contract_ref=many[0])
        with CaptureQueriesContext(connection) as asked:
            assert find_working_contract(nexus.caller("backend_worker")).id == many[0]
        (read,) = [one["sql"] for one in asked if 'FROM "contracts_contract"' in one["sql"]]
        assert f"'{many[0]}'" in read

    def test_let_qa_read_what_awaits_its_verdict(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS, workspace_scope=["src/"])
        assert self.scopes(nexus, "qa_worker") == ()
        submit(nexus, contract_id)
        assert self.scopes(nexus, "qa_worker") == ("src/",)
        assert self.scopes(nexus, "frontend_worker") == ()
        close(nexus, contract_id, "failed")
        assert self.scopes(nexus, "qa_worker") == ()

    def test_show_qa_nothing_of_another_department_nor_work_of_its_own(self, nexus):
        studies = issue(
            nexus, "research_worker", by="product_manager", workspace_scope=["docs/market/"]
        )
        accept(nexus, studies, by="research_worker")
        submit(nexus, studies, by="research_worker")
        own = issue(nexus, "qa_worker", workspace_scope=["tests/e2e/"])
        accept(nexus, own, by="qa_worker")
        assert self.scopes(nexus, "qa_worker") == ("tests/e2e/",)
        submit(nexus, own, by="qa_worker")
        assert self.scopes(nexus, "qa_worker") == ()


class TestSessionsOfContracts:
    def open(self, nexus, handle="backend_worker", **params):
        return nexus.post("/api/v1/sessions", params, handle)

    def test_one_is_opened_for_a_contract_in_progress(self, nexus):
        first = at_state(nexus, ContractState.IN_PROGRESS, coding=True, workspace_scope=["src/a/"])
        second = at_state(nexus, ContractState.IN_PROGRESS, coding=True, workspace_scope=["src/b/"])
        opened = self.open(nexus, contract=first).body
        assert (opened["mode"], opened["contract"]) == ("coding", first)
        assert nexus.caller("backend_worker").session.contract == second
        submit(nexus, first)
        read = nexus.get(f"/api/v1/sessions/{opened['id']}", "backend_worker").body
        assert (read["mode"], read["contract"]) == ("chat_safe", None)

    def test_many_are_released_as_quickly_as_few(self, nexus):
        """An agent opens some hundred a day; all wait for the end of the transaction."""
        asked = []
        for sessions in (2, 12):
            contract_id = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
            opened = [self.open(nexus, contract=contract_id).body["id"] for _ in range(sessions)]
            with CaptureQueriesContext(connection) as queries:
                submit(nexus, contract_id)
            asked.append(sum("INSERT INTO ledger_event" not in one["sql"] for one in queries))
            assert not Session.objects.filter(contract_ref=contract_id).exists()
            assert set(Session.objects.values_list("mode", flat=True)) == {"chat_safe"}
            grants = ModeGrant.objects.filter(session__in=opened)
            assert {grant.closed_at is None for grant in grants} == {False}
            closed = Event.objects.filter(action="session.mode_closed")
            assert (
                closed.filter(subject__in=[f"session:{one}" for one in opened]).count() == sessions
            )
        assert asked[0] == asked[1]

    def test_of_people_are_closed_by_as_few_statements_however_many_there_are(self, nexus):
        agent, asked = nexus.agent("backend_worker"), []
        told = {"caller": nexus.person("Board"), "now": timezone.now(), "reason": "x"}
        for number in (2, 12):
            opened = [self.open(nexus).body["id"] for _ in range(number)]
            for session in opened:
                open_mode(session_id=session, mode=ToolMode.CODING, **told)
            with CaptureQueriesContext(connection) as queries, transaction.atomic():
                close_modes_of_people(agent_id=agent.id, **told)
            asked.append(sum("INSERT INTO ledger_event" not in one["sql"] for one in queries))
            sessions = Session.objects.filter(id__in=opened)
            assert set(sessions.values_list("mode", flat=True)) == {"chat_safe"}
            assert not ModeGrant.objects.filter(closed_at=None).exists()
        assert asked[0] == asked[1]

    @pytest.mark.parametrize("state", [s for s in ContractState if s != "in_progress"])
    def test_none_for_a_contract_in_another_state(self, nexus, state):
        contract_id = at_state(nexus, state, coding=True)
        assert self.open(nexus, contract=contract_id).code == "INVALID_TRANSITION"
        assert Session.objects.filter(standing=False).count() == 0

    def test_none_for_a_contract_of_another(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        assert self.open(nexus, "it_manager", contract=contract_id).code == "NOT_YOURS"
        assert self.open(nexus, "frontend_worker", contract=contract_id).code == "NOT_FOUND"
        assert self.open(nexus, contract="CON-nothing").code == "NOT_FOUND"

    @pytest.mark.parametrize(
        "params", [{"mode": "coding"}, {"contract": ""}, {"contract": 7}, {"contract": "x" * 33},
                   {"contract": None}, {"contract": "a\x00"}]
    )  # fmt: skip
    def test_none_for_anything_else(self, nexus, params):
        assert self.open(nexus, **params).code == "INVALID_PARAMS"

    def test_none_for_a_contract_that_opens_nothing(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        assert self.open(nexus, contract=contract_id).code == "INVALID_PARAMS"


class TestAModeThatAPersonClosed:
    """Spec: modes 13: the agent does not undo what a person did."""

    @pytest.fixture
    def contract_id(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        session = nexus.caller("backend_worker").session
        board = nexus.person("Board")
        close_mode(session_id=session.id, caller=board, now=now(), reason="Wait.")
        return contract_id

    def open(self, nexus, contract_id):
        return nexus.post("/api/v1/sessions", {"contract": contract_id}, "backend_worker").body

    def test_ends_in_all_sessions_of_the_contract(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        closed, same = (self.open(nexus, contract_id)["id"] for _ in range(2))
        other = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        apart = self.open(nexus, other)["id"]
        board = nexus.person("Board")
        assert close_mode(session_id=same, caller=board, now=now(), reason="Wait.") == 3
        modes = dict(Session.objects.filter(standing=False).values_list("id", "mode"))
        assert modes == {UUID(closed): "chat_safe", UUID(same): "chat_safe", UUID(apart): "coding"}
        standing = nexus.caller("backend_worker").session
        assert (standing.mode, standing.contract) == ("coding", other)
        kept = Intervention.objects.get(action_taken="close_mode")
        assert kept.subject == f"session:{same}"

    def test_is_opened_by_no_further_session_of_the_contract(self, nexus, contract_id):
        opened = self.open(nexus, contract_id)
        assert (opened["mode"], opened["contract"]) == ("chat_safe", contract_id)
        assert not ModeGrant.objects.filter(closed_at=None).exists()

    def test_is_not_opened_by_rework(self, nexus, contract_id):
        submit(nexus, contract_id)
        assert close(nexus, contract_id, "rework", reason="No tests.")["state"] == "in_progress"
        assert nexus.caller("backend_worker").session.mode == "chat_safe"

    def test_is_opened_again_by_a_person(self, nexus, contract_id):
        opened = self.open(nexus, contract_id)
        board = nexus.person("Board")
        open_mode(
            session_id=opened["id"], mode=ToolMode.CODING, caller=board, now=now(), reason="Go on."
        )
        read = nexus.get(f"/api/v1/sessions/{opened['id']}", "backend_worker").body
        assert (read["mode"], read["contract"]) == ("coding", contract_id)

    def test_says_nothing_of_another_contract(self, nexus, contract_id):
        other = at_state(nexus, ContractState.IN_PROGRESS, coding=True)
        assert self.open(nexus, other)["mode"] == "coding"


class TestReadContract:
    def read(self, nexus, contract_id, by):
        return queries.read_contract(caller=nexus.caller(by), contract_id=contract_id)

    def test_shows_the_whole_to_its_parties(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id)
        for party in ("it_manager", "backend_worker"):
            found = self.read(nexus, contract_id, party)
            assert found["body"] == "Build it."
            assert (found["issuer"], found["assignee"]) == ("it_manager", "backend_worker")
            assert [r["kind"] for r in found["reports"]] == ["completion"]
            assert [v["verdict"] for v in found["verdicts"]] == ["PASS"]

    def test_answers_anybody_else_as_if_there_were_none(self, nexus):
        contract_id = issue(nexus)
        nothing = refusal(self.read, nexus, "CON-nothing", "ceo")
        for handle in ("hr_manager", "product_manager", "frontend_worker", "qa_worker"):
            assert refusal(self.read, nexus, contract_id, handle) == nothing

    def test_list_contracts_shows_the_whole_to_its_parties_and_those_above(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id)
        for handle in ("ceo", "it_manager", "backend_worker", "qa_worker"):
            found = nexus.call(handle, "list_contracts", contract_id=contract_id).result
            assert [r["body"] for r in found["reports"]] == ["It works."]
            assert [v["verdict"] for v in found["verdicts"]] == ["PASS"]
        for handle in ("hr_manager", "product_manager", "frontend_worker"):
            found = nexus.call(handle, "list_contracts", contract_id=contract_id)
            unknown = nexus.call(handle, "list_contracts", contract_id="CON-nothing")
            assert (found.code, found.body["message"]) == (
                "NOT_FOUND", unknown.body["message"],
            )  # fmt: skip

    def test_shows_qa_what_it_judges_and_has_judged(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS, workspace_scope=["src/"])
        assert refusal(self.read, nexus, contract_id, "qa_worker").code is Code.NOT_FOUND
        submit(nexus, contract_id)
        self.read(nexus, contract_id, "qa_worker")
        judge(nexus, contract_id)
        close(nexus, contract_id)
        found = self.read(nexus, contract_id, "qa_worker")
        assert (found["state"], found["closed_reason"]) == ("passed", "done")

    def judged_for_product(self, nexus):
        """Work of the frontend, which IT's QA judged, on a contract of the product manager."""
        contract_id = issue(
            nexus, "frontend_worker", by="product_manager", workspace_scope=["web/"]
        )
        accept(nexus, contract_id, by="frontend_worker")
        submit(nexus, contract_id, by="frontend_worker")
        judge(nexus, contract_id)
        return contract_id

    def test_tells_no_judge_the_reason_of_an_issuer_that_may_not_write_to_it(self, nexus):
        contract_id = self.judged_for_product(nexus)
        close(nexus, contract_id, by="product_manager", reason="Ask me next time.")
        readers = ("product_manager", "frontend_worker", "it_manager", "ceo", "qa_worker")
        reasons = {
            by: nexus.call(by, "list_contracts", contract_id=contract_id).result["closed_reason"]
            for by in readers
        }
        assert reasons.pop("qa_worker") is None
        assert set(reasons.values()) == {"Ask me next time."}

    def test_tells_no_judge_the_words_of_another(self, nexus):
        first = Agent.objects.get(organisation=nexus.organisation, handle="qa_worker")
        Agent.objects.create(
            organisation=nexus.organisation,
            handle="qa_2",
            role=first.role,
            reports_to=first.reports_to,
        )
        rows = Organisation.objects.filter(id=nexus.organisation.id)
        rows.update(policy_version=F("policy_version") + 1)
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id, evidence="Ask me.", body="For you.")
        words = {
            by: (found["evidence"], found["body"])
            for by in ("qa_2", "qa_worker", "it_manager", "backend_worker", "ceo")
            for found in self.read(nexus, contract_id, by)["verdicts"]
        }
        assert words.pop("qa_2") == ("", "")
        assert set(words.values()) == {("Ask me.", "For you.")}
        assert self.read(nexus, contract_id, "qa_2")["verdicts"][0]["verdict"] == "PASS"

    def test_tells_a_judge_why_the_board_cancelled_it(self, nexus):
        contract_id = self.judged_for_product(nexus)
        close(nexus, contract_id, "cancelled", by=nexus.person("Board"), reason="Too late.")
        assert self.read(nexus, contract_id, "qa_worker")["closed_reason"] == "Too late."


class TestListContracts:
    def pages(self, nexus, by, **fields):
        seen, cursor = [], None
        while True:
            page = queries.list_contracts(caller=nexus.caller(by), cursor=cursor, limit=2, **fields)
            seen.append([c["contract_id"] for c in page["contracts"]])
            cursor = page["next_cursor"]
            if cursor is None:
                return seen

    def test_pages_newest_first_over_both_sides_without_a_gap(self, nexus):
        top = issue(nexus, "it_manager", by="ceo", tool="generate_contract")
        made = [issue(nexus) for _ in range(4)]
        last = issue(nexus, "it_manager", by="ceo", tool="generate_contract")
        pages = self.pages(nexus, "it_manager")
        assert [c for page in pages for c in page] == [last, *reversed(made), top]
        assert [len(page) for page in pages] == [2, 2, 2]

    def test_shows_one_side_and_one_state(self, nexus):
        top = issue(nexus, "it_manager", by="ceo", tool="generate_contract")
        pending, running = issue(nexus), at_state(nexus, ContractState.IN_PROGRESS)
        assert self.pages(nexus, "it_manager", side=ContractSide.ASSIGNED) == [[top]]
        assert self.pages(nexus, "it_manager", side=ContractSide.ISSUED) == [[running, pending]]
        assert self.pages(nexus, "it_manager", state=ContractState.PENDING) == [[pending, top]]
        assert self.pages(nexus, "devops_worker") == [[]]

    def test_refuses_a_cursor_that_no_list_gave(self, nexus):
        found = refusal(queries.list_contracts, caller=nexus.caller("it_manager"), cursor="%%%")
        assert found.code is Code.INVALID_PARAMS


class TestReassignContracts:
    def leave(self, nexus, leaver, successor):
        agents = nexus.policy.agents
        return reassign_contracts(
            caller=nexus.system,
            leaver=agents[leaver],
            successor=agents[successor] if successor else BOARD_PARTY,
            now=now(),
        )

    def test_makes_the_superior_answer_for_what_the_leaver_issued(self, nexus):
        mine, done = at_state(nexus, ContractState.REVIEW), at_state(nexus, ContractState.FAILED)
        held = self.leave(nexus, "it_manager", "ceo")
        assert (held.issued, held.assigned) == ((mine,), ())
        assert (row(mine).issuer.handle, row(mine).version) == ("ceo", 4)
        assert row(done).issuer.handle == "it_manager"
        assert events(mine)[-1] == "contract.handed_over"
        told = Mail.objects.get(to_agent="ceo", from_agent="system")
        assert told.contract_ref == mine
        assert close(nexus, mine, by="ceo")["state"] == "passed"

    def test_names_no_contract_by_a_parameter_of_its_own(self, nexus):
        """A statement has 65,535 at most, and its leaver may have issued more."""
        issued = {issue(nexus), issue(nexus)}
        with CaptureQueriesContext(connection) as queries:
            assert set(self.leave(nexus, "it_manager", "ceo").issued) == issued
        updates = [one["sql"] for one in queries if one["sql"].startswith('UPDATE "contracts_')]
        assert ["unnest(" in one for one in updates] == [True]

    def test_tells_the_issuer_what_the_leaver_worked_on(self, nexus):
        first, second = issue(nexus), at_state(nexus, ContractState.IN_PROGRESS)
        held = self.leave(nexus, "backend_worker", "it_manager")
        assert held.assigned == (first, second)
        told = Mail.objects.get(to_agent="it_manager", from_agent="system")
        assert first in told.body
        assert second in told.body
        assert row(second).state == "in_progress"

    def test_leaves_the_top_agents_contracts_to_the_board(self, nexus):
        top = issue(nexus, "it_manager", by="ceo", tool="generate_contract")
        self.leave(nexus, "ceo", None)
        assert (row(top).issuer_id, row(top).issuer_name) == (None, "board")
        assert close(nexus, top, "cancelled", by=nexus.person("Board"))["state"] == "cancelled"

    def test_reports_on_inherited_work_go_up_to_whoever_may_read_them(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        self.leave(nexus, "it_manager", "ceo")
        done = submit(nexus, contract_id)
        assert Mail.objects.get(id=done["mail_id"]).to_agent == "it_manager"

    def test_lets_the_heir_name_each_of_them_in_its_own_mails(self, nexus):
        made = [issue(nexus) for _ in range(2)]
        not_mine = issue(nexus, "it_manager", by="ceo", tool="generate_contract")
        self.leave(nexus, "it_manager", "ceo")
        told = Mail.objects.get(to_agent="ceo", subject__startswith="You are now the issuer")
        assert all(contract_id in told.body for contract_id in made)
        for contract_id in made:
            require_own(nexus.caller("ceo"), contract_ref=contract_id)
            require_own(nexus.caller("backend_worker"), contract_ref=contract_id)
            with refused("NOT_FOUND"):
                require_own(nexus.caller("devops_worker"), contract_ref=contract_id)
        with refused("NOT_FOUND"):
            require_own(nexus.caller("backend_worker"), contract_ref=not_mine)

    def test_takes_the_same_statements_for_each_number(self, nexus):
        """Or somebody who issued thousands could not be deactivated in the time of one request."""
        taken = []
        for count in (2, 2, 9):
            made = [issue(nexus) for _ in range(count)]
            with CaptureQueriesContext(connection) as queries, transaction.atomic():
                assert self.leave(nexus, "it_manager", "ceo").issued == tuple(made)
                transaction.set_rollback(True)
            taken.append(len(queries))
            for contract_id in made:
                close(nexus, contract_id, "cancelled")
        assert taken[1] == taken[2]

    def test_of_who_holds_nothing_changes_nothing(self, nexus):
        held = self.leave(nexus, "research_worker", "product_manager")
        assert (held.assigned, held.issued) == ((), ())
        assert not Mail.objects.exists()


def test_rejections_are_written_by_the_door_not_by_the_service(nexus):
    refusal(issue, nexus, "ceo")
    assert not MailRejection.objects.exists()
