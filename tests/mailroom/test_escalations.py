"""Escalations wait for an answer; time that runs out is told once, upward (seed 000 §4.4, §4.5)."""

import pytest

from ledger.models import Event
from mailroom.models import Escalation, OutgoingNotice
from mailroom.unanswered import sweep_due
from orgchart.models import Agent
from tests.mailroom.world import NOW, after, call, configure, mails, sent

HELP = {"subject": "Help", "body": "The disk is full."}
WAIT, CEO_WAIT = 7200, 14_400


def escalate(company, who="backend_worker", at=NOW, **fields):
    return call(company, who, "escalate", at, **HELP, **fields).result


def row(made):
    return Escalation.objects.get(id=made["escalation_id"])


def reply(company, who, to, mail_id, at=NOW):
    return sent(company, who, to, at, subject="Re", body="Do this.", reply_to=mail_id)


class TestOpening:
    @pytest.mark.parametrize(
        ("who", "to", "wait"),
        [
            ("backend_worker", "it_manager", WAIT),
            ("it_manager", "ceo", CEO_WAIT),
            ("hr_manager", "ceo", CEO_WAIT),
        ],
    )
    def test_waits_as_long_as_the_one_above_may_take(self, nexus, who, to, wait):
        made = escalate(nexus, who)
        assert made["to"] == to
        assert row(made).due_at == after(seconds=wait)

    def test_by_send_mail_opens_the_same(self, nexus):
        mail = sent(nexus, "frontend_worker", "it_manager", type="escalation")
        found = Escalation.objects.get(mail_id=mail)
        assert (found.state, found.due_at) == ("open", after(seconds=WAIT))

    def test_takes_the_organisations_own_patience(self, nexus):
        configure(nexus, escalation_timeout=60)
        assert row(escalate(nexus)).due_at == after(seconds=60)

    def test_is_an_event(self, nexus):
        made = escalate(nexus)
        event = Event.objects.get(action="escalation.opened")
        assert event.subject == f"escalation:{made['escalation_id']}"


class TestAnAnswer:
    def test_is_a_reply_of_its_recipient(self, nexus):
        made = escalate(nexus)
        reply(nexus, "it_manager", "backend_worker", made["mail_id"], after(hours=1))
        assert (row(made).state, row(made).answered_by) == ("answered", "agent:it_manager")
        assert sweep_due(now=after(days=1)) == 0

    def test_is_not_that_it_was_read(self, nexus):
        made = escalate(nexus)
        call(nexus, "it_manager", "read_mail", mail_id=made["mail_id"])
        assert row(made).state == "open"

    def test_is_not_another_mail_nor_the_senders_own(self, nexus):
        made = escalate(nexus)
        sent(nexus, "it_manager", "backend_worker")
        reply(nexus, "backend_worker", "it_manager", made["mail_id"])
        assert row(made).state == "open"

    def test_is_passing_it_on(self, nexus):
        made = escalate(nexus)
        above = escalate(nexus, "it_manager", follows=made["escalation_id"])
        assert row(made).state == "passed_on"
        assert row(above).root_id == row(made).id
        assert row(above).mail.reply_to_id == made["mail_id"]

    def test_that_comes_late_stays_unanswered_in_the_record(self, nexus):
        made = escalate(nexus)
        sweep_due(now=after(seconds=WAIT))
        reply(nexus, "it_manager", "backend_worker", made["mail_id"], after(days=1))
        assert row(made).state == "unanswered"


class TestSilence:
    def test_before_it_is_due_is_no_silence(self, nexus):
        escalate(nexus)
        assert sweep_due(now=after(seconds=WAIT - 1)) == 0
        assert mails(nexus, "backend_worker") == []

    def test_is_told_to_the_sender_once(self, nexus):
        made = escalate(nexus)
        assert sweep_due(now=after(seconds=WAIT)) == 1
        assert sweep_due(now=after(days=9)) == 0
        (told,) = mails(nexus, "backend_worker", sender="system")
        assert told.subject == "No answer from it_manager to your escalation"
        assert f"follows={made['escalation_id']}" in told.body

    def test_of_three_in_one_thread_is_told_to_the_ceo_once(self, nexus):
        follows = None
        for attempt in range(5):
            at = after(seconds=attempt * (WAIT + 1))
            follows = escalate(nexus, at=at, follows=follows)["escalation_id"]
            sweep_due(now=after(seconds=(attempt + 1) * (WAIT + 1)))
            assert len(mails(nexus, "ceo", sender="system")) == (attempt >= 2)
        assert Event.objects.filter(action="escalation.ceo_told").count() == 1

    def test_of_three_separate_ones_is_not(self, nexus):
        for _ in range(3):
            escalate(nexus)
        sweep_due(now=after(seconds=WAIT))
        assert mails(nexus, "ceo") == []

    def test_of_the_ceo_after_being_told_goes_to_the_board(self, nexus):
        configure(nexus, board_webhook="https://board.example/hook")
        follows = None
        for attempt in range(3):
            at = after(seconds=attempt * (WAIT + 1))
            follows = escalate(nexus, at=at, follows=follows)["escalation_id"]
            sweep_due(now=after(seconds=(attempt + 1) * (WAIT + 1)))
        assert not OutgoingNotice.objects.exists()
        sweep_due(now=after(seconds=3 * (WAIT + 1) + CEO_WAIT))
        assert OutgoingNotice.objects.count() == 1

    def test_of_the_ceo_is_not_told_when_it_answered_the_notice(self, nexus):
        configure(nexus, board_webhook="https://board.example/hook")
        follows = None
        for attempt in range(3):
            at = after(seconds=attempt * (WAIT + 1))
            follows = escalate(nexus, at=at, follows=follows)["escalation_id"]
            sweep_due(now=after(seconds=(attempt + 1) * (WAIT + 1)))
        (told,) = mails(nexus, "ceo", sender="system")
        reply(nexus, "ceo", "it_manager", told.id, after(seconds=3 * (WAIT + 1)))
        sweep_due(now=after(days=30))
        assert not OutgoingNotice.objects.exists()

    def test_of_the_ceo_is_told_to_the_board_by_every_channel_once(self, nexus):
        configure(nexus, board_webhook="https://b.example/x", board_email="b@b.example")
        escalate(nexus, "it_manager")
        for days in (1, 2, 3):
            sweep_due(now=after(days=days))
        rows = OutgoingNotice.objects.all()
        assert {r.channel for r in rows} == {"webhook", "email"}
        assert len({r.event_id for r in rows}) == 1
        assert rows[0].payload["type"] == "escalation.unanswered"
        assert rows[0].payload["data"]["body"] == "Help\n\nThe disk is full."

    def test_of_the_ceo_twice_in_one_thread_is_told_to_the_board_once(self, nexus):
        configure(nexus, board_webhook="https://b.example/x")
        first = escalate(nexus, "it_manager")
        sweep_due(now=after(seconds=CEO_WAIT))
        escalate(nexus, "it_manager", after(days=1), follows=first["escalation_id"])
        sweep_due(now=after(days=2))
        assert OutgoingNotice.objects.count() == 1
        escalate(nexus, "it_manager", after(days=3))
        sweep_due(now=after(days=4))
        assert OutgoingNotice.objects.count() == 2, "another thread is another matter"

    def test_without_a_channel_to_the_board_is_still_an_event(self, nexus):
        escalate(nexus, "it_manager")
        sweep_due(now=after(days=1))
        assert Event.objects.filter(action="notice.written").count() == 1
        assert not OutgoingNotice.objects.exists()

    def test_towards_a_sender_that_is_gone_tells_nobody_and_ends(self, nexus):
        made = escalate(nexus)
        Agent.objects.filter(id=nexus.agent("backend_worker").id).update(active=False)
        configure(nexus)
        assert sweep_due(now=after(seconds=WAIT)) == 1
        assert row(made).state == "unanswered"
        assert mails(nexus, "backend_worker") == []

    def test_is_found_after_an_hour_without_a_clock(self, nexus):
        for _ in range(4):
            escalate(nexus)
        assert sweep_due(now=after(days=365)) == 4
        assert sweep_due(now=after(days=365)) == 0
