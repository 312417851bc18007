"""What a move does not give: reports that HR is denied (tools 25), work that QA never judged."""

import shutil

import pytest
from django.utils import timezone

from mailroom.models import Mail
from orgchart.packs import load_pack
from orgchart.policy.vocabulary import ToolMode
from tests.company import PACKS, load_company
from toolbox.modes import open_mode

DETAILS = "how the service is built"
MOVE = {"agent": "bob", "role": "hr_worker", "reports_to": "hr_manager"}


@pytest.fixture
def company(db):
    """Bob, a backend worker, has reported to IT; then HR moves him to itself, as the CEO says."""
    move = {"act": "move", "subject": "bob", "role": "hr_worker", "reports_to": "hr_manager"}
    return hired_to_move("bob", {"reports_to": "it_manager"}, move)


def hired_to_move(handle, place, move):
    """NEXUS, where HR hired a backend worker of IT, and may make this move, as the CEO says."""
    made = load_company("nexus")
    hire = {"act": "hire", "subject": handle, "role": "backend_worker", **place}
    order = {"to": "hr_manager", "title": "Grow", "body": "Do it.", "kind": "org_change"}
    number = call(made, "ceo", "generate_contract", changes=[hire, move], **order)["contract_id"]
    call(made, "hr_manager", "accept_contract", contract_id=number)
    hired = {"handle": handle, "role": "backend_worker", "reports_to": "it_manager"}
    call(made, "hr_manager", "create_agent_jd", **hired, title="B", job_description="x")
    return made


def call(company, who, tool, **params):
    return company.call(who, tool, **params).result


@pytest.fixture
def contract(company):
    number = call(company, "it_manager", "create_contract", to="bob", title="W", body="Do it.")
    number = number["contract_id"]
    call(company, "bob", "accept_contract", contract_id=number)
    report = {"contract_id": number, "kind": "progress", "title": "R", "body": DETAILS}
    call(company, "bob", "submit_report", **report)
    call(company, "hr_manager", "update_org_chart", changes=[MOVE], reason="It is needed there.")
    return number


class TestAReportOfAMovedAgent:
    def test_is_not_listed_to_who_is_denied_its_folder(self, company, contract):
        assert call(company, "hr_manager", "read_reports")["reports"] == []
        assert len(call(company, "it_manager", "read_tech_reports")["reports"]) == 1

    def test_is_not_read_by_its_number(self, company, contract):
        number = call(company, "it_manager", "read_tech_reports")["reports"][0]["document_id"]
        asked = company.call("hr_manager", "read_reports", document_id=number)
        assert asked.code == "NOT_FOUND"

    def test_is_not_read_with_its_contract(self, company, contract):
        for who, answer in (("hr_manager", "NOT_FOUND"), ("it_manager", "OK"), ("ceo", "OK")):
            assert company.call(who, "list_contracts", contract_id=contract).code == answer

    def test_is_not_attached_for_who_is_denied_its_folder(self, company, contract):
        path = call(company, "it_manager", "read_tech_reports")["reports"][0]["path"]
        mail = {"to": "hr_manager", "subject": "s", "body": "b"}
        attached = [{"path": path, "description": "the report"}]
        for who, kind in (("it_manager", "tool_request"), ("ceo", "info")):
            refused = company.call(who, "send_mail", type=kind, attachments=attached, **mail)
            assert refused.code == "SCOPE_DENIED"
            assert company.call(who, "send_mail", type=kind, **mail).code == "OK"

    def test_goes_to_the_issuer_where_it_is_denied_to_the_new_superior(self, company, contract):
        report = {"contract_id": contract, "kind": "completion", "title": "Done", "body": DETAILS}
        sent = call(company, "bob", "submit_report", **report)["mail_id"]
        assert call(company, "it_manager", "read_mail", mail_id=sent)["body"] == DETAILS
        assert company.call("hr_manager", "read_mail", mail_id=sent).code == "NOT_FOUND"

    def test_to_its_new_superior_is_read(self, company, contract):
        call(company, "bob", "send_mail", to="hr_manager", type="report", subject="s", body="b")
        hired = {"to": "bob", "title": "H", "body": "Hire."}
        number = call(company, "hr_manager", "create_contract", **hired)["contract_id"]
        call(company, "bob", "accept_contract", contract_id=number)
        report = {"contract_id": number, "kind": "progress", "title": "People", "body": "x"}
        call(company, "bob", "submit_report", **report)
        listed = call(company, "hr_manager", "read_reports")["reports"]
        assert [each["title"] for each in listed] == ["People"]
        assert company.call("hr_manager", "list_contracts", contract_id=number).code == "OK"


class TestAReportToTheTopAgent:
    """The top agent has no department (Spec: files 13): HR reads no technical report by it."""

    @pytest.fixture
    def contract(self, company):
        """IT left, and the CEO took its contract with Bob over."""
        number = call(company, "it_manager", "create_contract", to="bob", title="W", body="Do it.")
        number = number["contract_id"]
        call(company, "bob", "accept_contract", contract_id=number)
        order = {"to": "hr_manager", "title": "Go", "body": "Do it.", "kind": "org_change"}
        leave = [{"act": "deactivate", "subject": "it_manager"}]
        going = call(company, "ceo", "generate_contract", changes=leave, **order)["contract_id"]
        call(company, "hr_manager", "accept_contract", contract_id=going)
        call(company, "hr_manager", "deactivate_agent", agent="it_manager", reason="It is done.")
        return number

    @pytest.fixture
    def path(self, company, contract):
        return self.reported(company, contract, "progress")

    @staticmethod
    def reported(company, contract, kind):
        report = {"contract_id": contract, "kind": kind, "title": "R", "body": DETAILS}
        call(company, "bob", "submit_report", **report)
        return call(company, "ceo", "read_reports")["reports"][0]["path"]

    def test_is_not_attached_for_who_is_denied_its_folder(self, company, path):
        mail = {"to": "hr_manager", "type": "info", "subject": "s", "body": "b"}
        attached = [{"path": path, "description": "the report"}]
        assert company.call("ceo", "send_mail", attachments=attached, **mail).code == "SCOPE_DENIED"

    def test_goes_to_no_one_who_is_denied_its_folder_with_a_move(self, company, path):
        call(company, "hr_manager", "update_org_chart", changes=[MOVE], reason="It is needed.")
        assert call(company, "hr_manager", "read_reports")["reports"] == []

    def test_is_filed_after_a_move_where_the_work_was_given(self, company, contract):
        call(company, "hr_manager", "update_org_chart", changes=[MOVE], reason="It is needed.")
        path = self.reported(company, contract, "completion")
        assert path.startswith("reports/tech/")
        assert call(company, "hr_manager", "read_reports")["reports"] == []
        inbox = call(company, "hr_manager", "read_inbox", status="all")["mails"]
        assert "bob" not in [mail["from"] for mail in inbox]


class TestWhoMakesCode:
    """The work of a judge needs no verdict (Spec: contracts 46)."""

    MOVE = {"agent": "cyd", "role": "qa_worker"}

    @pytest.fixture
    def company(self, db):
        return hired_to_move("cyd", {}, {"act": "move", "subject": "cyd", "role": "qa_worker"})

    def order(self, company, **terms):
        work = {"to": "cyd", "title": "W", "body": "Do it."}
        number = call(company, "it_manager", "create_contract", **work, **terms)["contract_id"]
        call(company, "cyd", "accept_contract", contract_id=number)
        return number

    def move(self, company):
        moves = {"changes": [self.MOVE], "reason": "It is needed there."}
        return company.call("hr_manager", "update_org_chart", **moves)

    def close(self, company, number, outcome):
        asked = {"contract_id": number, "outcome": outcome, "reason": "r"}
        return company.call("it_manager", "close_contract", **asked)

    @pytest.mark.parametrize("terms", [{"mode": "coding"}, {"workspace_scope": ["src/app/"]}])
    def test_becomes_no_judge_before_its_work_is_judged(self, company, terms):
        """Spec: contracts 57."""
        number = self.order(company, **terms)
        done = {"contract_id": number, "kind": "completion", "title": "R", "body": "x"}
        call(company, "cyd", "submit_report", **done)
        refused = self.move(company)
        assert (refused.code, refused.body["details"]) == ("INVALID_PARAMS", {"contract": number})
        assert self.close(company, number, "passed").code == "APPROVAL_REQUIRED"
        assert self.close(company, number, "failed").code == "OK"
        assert self.move(company).code == "OK"

    def test_becomes_a_judge_with_work_that_needs_no_verdict(self, company):
        self.order(company)
        assert self.move(company).code == "OK"


class TestUnreadMailOfAMovedAgent:
    """Of who was moved and then deactivated (Spec: mail 34)."""

    @pytest.fixture
    def company(self, db):
        """Cyd reports to it_manager; a second IT manager is there, with no rule between the two."""
        made = load_company("nexus")
        changes = [
            {"act": "hire", "subject": "it_two", "role": "it_manager"},
            {"act": "hire", "subject": "cyd", "role": "backend_worker"},
            {"act": "move", "subject": "cyd", "reports_to": "it_manager"},
            {"act": "deactivate", "subject": "cyd"},
        ]
        order = {"to": "hr_manager", "title": "Grow", "body": "Do it.", "kind": "org_change"}
        number = call(made, "ceo", "generate_contract", changes=changes, **order)["contract_id"]
        call(made, "hr_manager", "accept_contract", contract_id=number)
        hired = {"title": "C", "job_description": "x"}
        manager = {"handle": "it_two", "role": "it_manager", "reports_to": "ceo"}
        call(made, "hr_manager", "create_agent_jd", **manager, **hired)
        worker = {"handle": "cyd", "role": "backend_worker", "reports_to": "it_two"}
        call(made, "hr_manager", "create_agent_jd", **worker, **hired)
        return made

    def send(self, company, who):
        mail = {"to": "cyd", "type": "info", "subject": f"by {who}", "body": "b"}
        return call(company, who, "send_mail", **mail)["mail_id"]

    def test_is_not_read_by_who_its_writer_may_not_write_to(self, company):
        old = self.send(company, "it_two")
        moves = [{"agent": "cyd", "reports_to": "it_manager"}]
        call(company, "hr_manager", "update_org_chart", changes=moves, reason="r")
        new = self.send(company, "it_manager")
        call(company, "hr_manager", "deactivate_agent", agent="cyd", reason="r")
        left = call(company, "it_manager", "read_inbox", left_by="cyd")
        assert ([mail["mail_id"] for mail in left["mails"]], left["unread"]) == ([new], 1)
        assert company.call("it_manager", "read_mail", mail_id=old).code == "NOT_FOUND"
        assert company.call("it_manager", "read_mail", mail_id=new).code == "OK"
        (listed,) = [
            mail
            for mail in call(company, "it_manager", "read_inbox")["mails"]
            if mail["subject"] == "cyd left 1 unread mails"
        ]
        body = call(company, "it_manager", "read_mail", mail_id=listed["mail_id"])["body"]
        assert new in body
        assert old not in body

    def test_of_the_system_is_not_read_where_it_quotes_such_a_writer(self, company):
        """The reason of a restricted tool is its manager's text."""
        taken = {"agent": "cyd", "tool": "run_linter", "modes": [], "reason": "SECRET"}
        assert company.call("it_two", "manage_tools", action="tighten", **taken).code == "OK"
        moves = [{"agent": "cyd", "reports_to": "it_manager"}]
        call(company, "hr_manager", "update_org_chart", changes=moves, reason="r")
        company.call("cyd", "send_mail", to="ceo", type="info", subject="s", body="b")
        call(company, "hr_manager", "deactivate_agent", agent="cyd", reason="r")
        left = call(company, "it_manager", "read_inbox", left_by="cyd")
        subjects = [mail["subject"] for mail in left["mails"]]
        assert (subjects, left["unread"]) == (["You may not contact ceo"], 1)
        (old,) = Mail.objects.filter(to_agent="cyd", body__contains="SECRET")
        assert company.call("it_manager", "read_mail", mail_id=old.id).code == "NOT_FOUND"
        notices = Mail.objects.filter(to_agent="it_manager", body__contains="restricted")
        assert not notices.exists(), "nor is its subject in the list of what cyd left"

    def test_of_the_system_quotes_who_issued_the_closed_contract(self, company):
        work = {"to": "cyd", "title": "SECRET", "body": "b"}
        number = call(company, "it_two", "create_contract", **work)["contract_id"]
        closed = {"contract_id": number, "outcome": "cancelled", "reason": "r"}
        call(company, "it_two", "close_contract", **closed)
        notice = Mail.objects.get(to_agent="cyd", from_agent="system")
        assert (notice.subject, notice.quoted) == (
            "cancelled: SECRET",
            [company.policy.agents["it_two"].id],
        )

    def test_of_the_system_from_before_is_read_by_nobody_else(self, company):
        words = {"from_agent": "system", "mail_type": "info", "subject": "s", "body": "b"}
        cyd = {"recipient_id": company.policy.agents["cyd"].id, "to_agent": "cyd"}
        old = Mail(id="MAIL-1", organisation=company.organisation, status="sent", **words, **cyd)
        old.save()
        call(company, "hr_manager", "deactivate_agent", agent="cyd", reason="r")
        assert call(company, "it_two", "read_inbox", left_by="cyd")["mails"] == []
        assert company.call("it_two", "read_mail", mail_id=old.id).code == "NOT_FOUND"


@pytest.mark.django_db
class TestAModeThatAPersonOpened:
    @pytest.mark.parametrize("changes", [True, False], ids=["another role", "the same role"])
    def test_ends_with_the_role_that_it_was_opened_for(self, changes):
        """Spec: modes 13."""
        there = {"reports_to": "it_manager", **({"role": "frontend_worker"} if changes else {})}
        move = {"act": "move", "subject": "bob", **there}
        company = hired_to_move("bob", {"reports_to": "it_manager"}, move)
        session = company.get("/api/v1/me", "bob").body["session"]["id"]
        open_mode(
            session_id=session,
            mode=ToolMode.CODING,
            caller=company.person("Board"),
            now=timezone.now(),
            reason="A look at the tests.",
        )
        changed = [{"agent": "bob", **there}]
        call(company, "hr_manager", "update_org_chart", changes=changed, reason="It is needed.")
        mode = company.get("/api/v1/me", "bob").body["session"]["mode"]
        assert mode == ("chat_safe" if changes else "coding")


class TestAJudgeThatMadeTheWorkBefore:
    """Spec: contracts 28: the branch holds its own commits, whoever goes on with it."""

    @pytest.fixture
    def company(self, db):
        move = {"act": "move", "subject": "bob", "role": "qa_worker"}
        made = hired_to_move("bob", {"reports_to": "it_manager"}, move)
        first = self.submitted(made, "bob")
        closed = {"contract_id": first, "outcome": "failed", "reason": "It is not enough."}
        call(made, "it_manager", "close_contract", **closed)
        moved = {"agent": "bob", "role": "qa_worker"}
        call(made, "hr_manager", "update_org_chart", changes=[moved], reason="QA needs bob.")
        return made

    @staticmethod
    def submitted(company, to, branch="feature/login"):
        terms = {"title": "W", "body": "Do it.", "assigned_branch": branch}
        number = call(company, "it_manager", "create_contract", to=to, **terms)["contract_id"]
        call(company, to, "accept_contract", contract_id=number)
        done = {"contract_id": number, "kind": "completion", "title": "R", "body": "It is done."}
        call(company, to, "submit_report", **done)
        return number

    def test_gives_no_verdict_on_its_branch(self, company):
        number = self.submitted(company, "backend_worker")
        verdict = {"contract_id": number, "verdict": "PASS", "evidence": "fine"}
        assert company.call("bob", "write_verdict", **verdict).code == "NOT_YOURS"
        assert company.call("qa_worker", "write_verdict", **verdict).code == "OK"

    def test_judges_another_branch(self, company):
        number = self.submitted(company, "backend_worker", "feature/other")
        verdict = {"contract_id": number, "verdict": "PASS", "evidence": "fine"}
        assert company.call("bob", "write_verdict", **verdict).code == "OK"

    def test_is_not_the_judge_that_a_contract_is_issued_with(self, company):
        leave = {"act": "deactivate", "subject": "qa_worker"}
        order = {"to": "hr_manager", "title": "Less", "body": "Do it.", "kind": "org_change"}
        number = call(company, "ceo", "generate_contract", changes=[leave], **order)["contract_id"]
        call(company, "hr_manager", "accept_contract", contract_id=number)
        call(company, "hr_manager", "deactivate_agent", agent="qa_worker", reason="It leaves.")
        terms = {"to": "backend_worker", "title": "W", "body": "Do it."}
        for branch, answer in (("feature/login", "SCOPE_DENIED"), ("feature/other", "OK")):
            issued = company.call("it_manager", "create_contract", assigned_branch=branch, **terms)
            assert issued.code == answer


class TestAJudgeThatIssuedTheWorkBefore:
    """Spec: contracts 28: it left, its contract went to its superior, and it came back as QA."""

    @pytest.fixture
    def company(self, db):
        return load_company("nexus")

    def be(self, company, folder, two, backend_worker="reports_to: it_manager"):
        """Load the pack with these lines of the agent `two` and of `backend_worker`."""
        shutil.copytree(PACKS / "nexus", folder)
        for handle, lines in (
            ("two", f"title: Two\n{two}\n"),
            ("backend_worker", f"role: backend_worker\ntitle: B\n{backend_worker}\n"),
        ):
            (folder / "agents" / f"{handle}.yaml").write_text(lines, encoding="utf-8")
        load_pack(folder, caller=company.system, now=timezone.now())

    def test_gives_no_verdict_on_it(self, company, tmp_path):
        manager = "role: it_manager\nreports_to: ceo"
        co_managed = "reports_to: it_manager\nco_managers: [two]"
        self.be(company, tmp_path / "1", manager, co_managed)
        terms = {"to": "backend_worker", "title": "W", "body": "Do it.", "mode": "coding"}
        number = call(company, "two", "create_contract", **terms)["contract_id"]
        call(company, "backend_worker", "accept_contract", contract_id=number)
        self.be(company, tmp_path / "2", f"{manager}\nactive: false")
        done = {"contract_id": number, "kind": "completion", "title": "R", "body": "It is done."}
        call(company, "backend_worker", "submit_report", **done)
        self.be(company, tmp_path / "3", "role: qa_worker\nreports_to: it_manager")
        del company.keys["two"]
        verdict = {"contract_id": number, "verdict": "PASS", "evidence": "fine"}
        assert company.call("two", "write_verdict", **verdict).code == "NOT_YOURS"
        assert company.call("qa_worker", "write_verdict", **verdict).code == "OK"
