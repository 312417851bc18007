"""C-01 to C-07 and every refusal of a mail (Spec: mail 12), through the door."""

import pytest

from ledger.models import Event
from mailroom.escalations import timeouts
from mailroom.escalations.timeouts import sweep_due
from mailroom.models import Escalation, Mail, MailRejection, OutgoingNotice
from tests.company import load_company
from tests.mailroom.world import NOW, after, call, configure, deactivate, mails, put_file, send
from tests.oracle.org import AGENTS, BOARD, CEO, CHAIN, IT, MANAGERS, WORKERS
from toolbox import scheduler

PAPER = {"title": "Work", "body": "Do it."}


class TestSection42:
    def test_c01_the_ceo_contacts_level_2_only(self, nexus):
        assert [send(nexus, CEO, to).code for to in MANAGERS] == ["OK"] * 3
        assert {send(nexus, CEO, to).code for to in WORKERS} == {"CONTACT_DENIED"}

    def test_c02_a_manager_contacts_its_workers_the_ceo_and_managers_under_conditions(self, nexus):
        assert send(nexus, "it_manager", "backend_worker").code == "OK"
        assert send(nexus, "it_manager", "ceo").code == "OK"
        assert send(nexus, "it_manager", "research_worker").code == "CONTACT_DENIED"
        assert send(nexus, "it_manager", "hr_manager").code == "MAIL_TYPE_DENIED"
        assert send(nexus, "it_manager", "hr_manager", type="tool_request").code == "OK"

    def test_c03_a_worker_contacts_its_direct_manager_only(self, nexus):
        for worker in WORKERS:
            superior = CHAIN[worker][2]
            assert send(nexus, worker, superior).code == "OK"
            others = [a for a in (*AGENTS, BOARD) if a not in (worker, superior)]
            found = {send(nexus, worker, to).code for to in others}
            assert found <= {"CONTACT_DENIED", "MAIL_TYPE_DENIED"}

    def test_c04_workers_do_not_contact_each_other(self, nexus):
        found = {send(nexus, a, b).code for a in WORKERS for b in WORKERS if a != b}
        assert found == {"CONTACT_DENIED"}

    def test_c05_departments_meet_through_their_managers(self, nexus):
        assert send(nexus, "backend_worker", "product_manager").code == "CONTACT_DENIED"
        assert send(nexus, "research_worker", "it_manager").code == "CONTACT_DENIED"
        relay = send(nexus, "it_manager", "product_manager", type="tech_review")
        assert relay.code == "OK"

    def test_c06_a_violation_is_stopped_and_kept(self, nexus):
        send(nexus, "backend_worker", "ceo")
        kept = MailRejection.objects.get()
        assert (kept.from_agent, kept.to_agent, kept.mail_type, kept.code, kept.attempted_at) == (
            "backend_worker",
            "ceo",
            "info",
            "CONTACT_DENIED",
            NOW,
        )
        assert "not authorized to contact ceo" in kept.reason
        assert mails(nexus, "ceo") == []

    def test_c07_contracts_flow_down_the_chain_only(self, nexus):
        down = [("ceo", "generate_contract", "it_manager")]
        down += [("it_manager", "create_contract", "backend_worker")]
        up_or_aside = [
            *((IT, "create_contract", to, "LEVEL_DENIED") for to in (CEO, "hr_manager", IT)),
            (IT, "create_contract", BOARD, "CONTACT_DENIED"),
            (CEO, "generate_contract", CEO, "LEVEL_DENIED"),
            *((CEO, "generate_contract", to, "CONTACT_DENIED") for to in ("qa_worker", BOARD)),
        ]
        for who, tool, to in down:
            assert call(nexus, who, tool, to=to, **PAPER).code == "OK"
        for who, tool, to, code in up_or_aside:
            assert call(nexus, who, tool, to=to, **PAPER).code == code, (who, to)


class TestSection43:
    def test_worker_reports_to_its_own_manager_with_submit_report(self, nexus):
        made = call(nexus, "it_manager", "create_contract", to="backend_worker", **PAPER).result
        paper = {"contract_id": made["contract_id"]}
        call(nexus, "backend_worker", "accept_contract", **paper)
        report = {"kind": "completion", "title": "Done", "body": ""}
        done = call(nexus, "backend_worker", "submit_report", **paper, **report).result
        assert Mail.objects.get(id=done["mail_id"]).to_agent == "it_manager"

    def test_manager_reports_to_the_ceo_by_mail(self, nexus):
        assert send(nexus, "it_manager", "ceo", type="report").code == "OK"

    def test_ceo_reports_to_the_board_with_a_report_and_nothing_else(self, nexus):
        assert send(nexus, "ceo", "board", type="report").code == "OK"
        assert send(nexus, "ceo", "board", type="info").code == "MAIL_TYPE_DENIED"
        assert Mail.objects.get(to_agent="board").recipient is None

    @pytest.mark.parametrize("who", [a for a in AGENTS if a != CEO])
    def test_nobody_else_writes_to_the_board_and_the_attempt_is_kept(self, nexus, who):
        assert send(nexus, who, "board", type="report").code == "CONTACT_DENIED"
        assert MailRejection.objects.get().to_agent == "board"

    @pytest.mark.parametrize("worker", WORKERS)
    def test_a_worker_has_no_tool_that_issues(self, nexus, worker):
        for tool in ("create_contract", "generate_contract", "approve_deployment"):
            assert call(nexus, worker, tool).code == "TOOL_NOT_BOUND"


class TestSection45:
    def test_recipient_that_does_not_exist_is_refused_kept_and_said(self, nexus):
        answer = send(nexus, "backend_worker", "nobody")
        assert answer.code == "RECIPIENT_UNKNOWN"
        assert answer.body["next_action"]
        assert MailRejection.objects.get().code == "RECIPIENT_UNKNOWN"
        assert mails(nexus, "backend_worker") == []

    def test_recipient_that_is_inactive_is_refused_and_the_senders_superior_told(self, nexus):
        deactivate(nexus, "devops_worker")
        assert send(nexus, "it_manager", "devops_worker").code == "RECIPIENT_INACTIVE"
        assert MailRejection.objects.get().code == "RECIPIENT_INACTIVE"
        told = mails(nexus, "ceo", sender="system")
        assert [m.subject for m in told] == [
            "it_manager wrote to devops_worker, who is deactivated"
        ]
        assert mails(nexus, "it_manager") == []

    def test_superior_that_is_inactive_is_refused_and_the_next_above_told(self, nexus):
        deactivate(nexus, "it_manager")
        assert send(nexus, "backend_worker", "it_manager").code == "RECIPIENT_INACTIVE"
        (told,) = mails(nexus, "ceo", sender="system")
        assert told.subject == "backend_worker wrote to it_manager, who is deactivated"

    def test_agent_that_is_no_contact_is_refused_the_same_active_or_not(self, nexus):
        before = send(nexus, "backend_worker", "qa_worker").body
        deactivate(nexus, "qa_worker")
        assert send(nexus, "backend_worker", "qa_worker").body == before
        assert before["error_code"] == "CONTACT_DENIED"

    def test_manager_that_does_not_answer_is_escalated_to_again_and_the_third_time_tells_the_ceo(
        self, nexus
    ):
        wait = nexus.policy.settings["escalation_timeout"]
        follows = None
        for attempt in range(3):
            at = after(seconds=attempt * (wait + 1))
            params = {"subject": "Help", "body": "Disk full.", "follows": follows}
            made = call(nexus, "backend_worker", "escalate", at, **params).result
            follows = made["escalation_id"]
            assert mails(nexus, "ceo", sender="system") == [], attempt
            sweep_due(now=after(seconds=(attempt + 1) * (wait + 1)))
            assert len(mails(nexus, "backend_worker", sender="system")) == attempt + 1
        told = mails(nexus, "ceo", sender="system")
        assert len(told) == 1
        assert "backend_worker has escalated 3 times" in told[0].subject

    def test_ceo_that_does_not_answer_is_told_to_the_board_outside(self, nexus):
        configure(nexus, board_webhook="https://board.example/hook", board_email="b@board.example")
        call(nexus, "it_manager", "escalate", subject="Help", body="Money.")
        sweep_due(now=after(seconds=nexus.policy.settings["ceo_timeout"] + 1))
        channels = set(OutgoingNotice.objects.values_list("channel", flat=True))
        assert channels == {"webhook", "email"}
        assert Escalation.objects.get().told_board_at is not None

    def test_board_without_a_way_out_is_not_told_and_is_once_there_is_one(self, nexus):
        call(nexus, "it_manager", "escalate", subject="Help", body="Money.")
        wait = nexus.policy.settings["ceo_timeout"]
        assert sweep_due(now=after(seconds=wait + 1)) == 1
        row = Escalation.objects.get()
        assert (row.state, row.told_board_at) == ("unanswered", None)
        assert row.board_waits_since == after(seconds=wait + 1)
        assert Event.objects.filter(action="escalation.board_not_told").count() == 1
        assert sweep_due(now=after(seconds=wait + 60)) == 0
        configure(nexus, board_webhook="https://board.example/hook")
        told_at = after(seconds=wait + 120)
        assert sweep_due(now=told_at) == 1
        assert sweep_due(now=after(seconds=wait + 180)) == 0
        notice = OutgoingNotice.objects.get()
        assert notice.payload["data"]["escalation"] == str(row.id)
        row = Escalation.objects.get()
        assert (row.told_board_at, row.board_waits_since) == (told_at, None)
        assert notice.created_at == told_at

    def test_board_is_told_late_in_the_turns_of_one_run(self, nexus, monkeypatch):
        """Spec: clocks 18. Organisations with many such threads share its 5 seconds."""
        other, done, tell = load_company("dev-team"), [], timeouts._notify_board_late
        for company, top in ((nexus, "ceo"), (other, "team-lead")):
            for who in (one.handle for one in company.policy.agents.values()):
                if company.policy.agents[who].superior == top:
                    call(company, who, "escalate", subject="Help", body="Money.")
        wait = nexus.policy.settings["ceo_timeout"]
        sweep_due(now=after(seconds=wait + 1))
        for each in (nexus, other):
            configure(each, board_webhook="https://board.example/hook")

        def take_a_second(first, now):
            done.append(first.organisation_id)
            tell(first, now)

        monkeypatch.setattr(timeouts, "_notify_board_late", take_a_second)
        monkeypatch.setattr(scheduler.time, "monotonic", lambda: float(len(done)))
        sweep_due(now=after(seconds=wait + 2))
        assert len(done) <= scheduler.TURN + 2
        assert set(done) == {nexus.organisation.id, other.organisation.id}

    def test_board_is_not_told_late_of_what_was_answered_by_then(self, nexus):
        made = call(nexus, "it_manager", "escalate", subject="Help", body="Money.").result
        wait = nexus.policy.settings["ceo_timeout"]
        sweep_due(now=after(seconds=wait + 1))
        mail = Escalation.objects.get(id=made["escalation_id"]).mail_id
        at = after(seconds=wait + 2)
        sent = {"to": "it_manager", "type": "info", "subject": "Re", "body": "Yes."}
        assert call(nexus, "ceo", "send_mail", at, **sent, reply_to=mail).code == "OK"
        configure(nexus, board_webhook="https://board.example/hook")
        assert sweep_due(now=after(seconds=wait + 60)) == 0
        assert not OutgoingNotice.objects.exists()

    def test_violation_is_stopped_kept_and_told_to_who_tried(self, nexus):
        assert send(nexus, "backend_worker", "ceo").code == "CONTACT_DENIED"
        assert MailRejection.objects.count() == 1
        (told,) = mails(nexus, "backend_worker", sender="system")
        assert told.subject == "You may not contact ceo"
        events = Event.objects.filter(decision="deny")
        assert [(e.code, e.tool) for e in events] == [("CONTACT_DENIED", "send_mail")]

    @pytest.mark.parametrize("field", ["from_", "from_agent"])
    def test_forged_sender_is_overwritten_in_silence(self, nexus, field):
        answer = send(nexus, "backend_worker", "it_manager", **{field: "ceo"})
        assert answer.code == "OK"
        (mail,) = mails(nexus, "it_manager")
        assert mail.from_agent == "backend_worker"
        assert not Event.objects.filter(decision="deny").exists()
        assert not MailRejection.objects.exists()

    @pytest.mark.parametrize("field", ["from", "from_agent"])
    def test_forged_sender_is_overwritten_in_a_nested_field_too(self, nexus, field):
        """Spec: mail 3."""
        path = put_file(nexus, "agents/backend_worker/plan.txt")
        attached = {"path": path, field: "ceo"}
        assert send(nexus, "backend_worker", "it_manager", attachments=[attached]).code == "OK"
        (mail,) = mails(nexus, "it_manager")
        assert mail.from_agent == "backend_worker"
        assert field not in mail.attachments[0]
        other = {"path": path, "sender": "ceo"}
        refused = send(nexus, "backend_worker", "it_manager", attachments=[attached, other])
        assert refused.code == "INVALID_PARAMS"
        assert list(refused.body["details"]) == ["attachments.1.sender"]
