"""A problem goes up one step at a time, and its answer comes back (Spec: escalation 1)."""

import pytest

from mailroom.models import Escalation

PROBLEM = {"subject": "Out of disk", "body": "The load test fills the disk."}


class TestAnEscalation:
    def test_goes_from_worker_to_manager_to_ceo_and_back(self, stage):
        first = stage.call("devops_worker", "escalate", **PROBLEM).result
        assert first["to"] == "it_manager"
        second = stage.call(
            "it_manager", "escalate", **PROBLEM, follows=first["escalation_id"]
        ).result
        assert second["to"] == "ceo"
        answer = {"type": "info", "subject": "Re", "body": "Buy 200 GB."}
        stage.done("ceo", "send_mail", to="it_manager", reply_to=second["mail_id"], **answer)
        stage.done(
            "it_manager", "send_mail", to="devops_worker", reply_to=first["mail_id"], **answer
        )
        states = dict(Escalation.objects.values_list("mail_id", "state"))
        assert states[first["mail_id"]] == "passed_on"
        assert states[second["mail_id"]] == "answered"

    @pytest.mark.parametrize("who", ["backend_worker", "devops_worker", "qa_worker"])
    def test_never_passes_the_direct_superior(self, stage, who):
        mail = {"type": "escalation", **PROBLEM}
        assert stage.call(who, "send_mail", to="ceo", **mail).code == "CONTACT_DENIED"
        assert stage.call(who, "send_mail", to="board", **mail).code == "CONTACT_DENIED"
        assert stage.call(who, "escalate", to="ceo", **PROBLEM).code == "INVALID_PARAMS"

    @pytest.mark.parametrize(
        ("who", "superior"),
        [("frontend_worker", "it_manager"), ("research_worker", "product_manager")],
    )
    def test_of_those_without_the_tool_is_a_mail_to_their_manager(self, stage, who, superior):
        assert stage.call(who, "escalate", **PROBLEM).code == "TOOL_NOT_BOUND"
        sent = stage.call(who, "send_mail", to=superior, type="escalation", **PROBLEM).result
        assert Escalation.objects.get(mail_id=sent["mail_id"]).recipient.handle == superior

    def test_is_followed_only_by_who_sent_or_received_it(self, stage):
        first = stage.call("devops_worker", "escalate", **PROBLEM).result
        for who in ("backend_worker", "qa_worker", "hr_manager"):
            follow = stage.call(who, "escalate", **PROBLEM, follows=first["escalation_id"])
            assert follow.code == "NOT_FOUND", who

    def test_of_the_ceo_is_a_note_for_the_board(self, stage):
        assert stage.call("ceo", "escalate", **PROBLEM).code == "TOOL_NOT_BOUND"
        note = stage.call("ceo", "write_note", title="For the Board", content="Out of disk.")
        assert note.code == "OK"
