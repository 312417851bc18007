"""Escalations and notices as people see them: one thread, an answer, a second try; and who may."""

from datetime import timedelta

import pytest
from django.core.management import call_command

from core.permissions import PeopleGroup
from ledger.models import Event
from mailroom.escalations import timeouts as unanswered
from mailroom.models import Escalation, Mail, OutgoingNotice
from orgchart.models import Organisation
from tests.admin.forms import filled
from tests.admin.places import act_page, change_page, list_page
from tests.browser.day import HOSTILE

OTHERS = [None, PeopleGroup.OBSERVER, PeopleGroup.REVIEWER, PeopleGroup.HR]


@pytest.fixture
def chain(company):
    """Worker, manager, CEO: nobody solves it, the Board is told; the newest step."""
    organisation = Organisation.objects.get(id=company.organisation.id)
    organisation.settings |= {"board_webhook": "https://board.example/hook"}
    organisation.policy_version += 1
    organisation.save()
    first = company.call("backend_worker", "escalate", subject="The disk is full", body=HOSTILE)
    passed = company.call(
        "it_manager",
        "escalate",
        subject="No money for disks",
        body="200 GB.",
        follows=first.result["escalation_id"],
    )
    row = Escalation.objects.get(id=passed.result["escalation_id"])
    unanswered.sweep_due(now=row.due_at)
    return Escalation.objects.get(id=row.id)


@pytest.fixture
def dead(chain):
    OutgoingNotice.objects.update(state="dead", attempts=12, last_problem="NoticeRefused: 500")
    return OutgoingNotice.objects.get()


def answer(client, row, **changes):
    page = act_page(row, "answer")
    return client.post(page, filled(client, page, "act-form", reply="Buy it.", **changes))


def refused():
    return Event.objects.filter(action="human.denied").order_by("-seq").first()


@pytest.fixture
def unheard(company):
    """The CEO does not answer, and there is no channel to the Board."""
    made = company.call("it_manager", "escalate", subject="No money for disks", body="200 GB.")
    row = Escalation.objects.get(id=made.result["escalation_id"])
    unanswered.sweep_due(now=row.due_at)
    return Escalation.objects.get(id=row.id)


class TestABoardThatCannotBeTold:
    def test_is_said_on_the_escalation_and_on_the_first_page(self, board, unheard):
        assert unheard.told_board_at is None
        html = board.get(change_page(unheard)).content.decode()
        assert "the Board got no notice" in html
        assert "set board_webhook or board_email" in html
        assert "the Board got no notice of 1" in board.get("/admin/").content.decode()

    def test_is_said_no_more_once_it_was_told(self, board, unheard):
        organisation = Organisation.objects.get(id=unheard.organisation_id)
        organisation.settings |= {"board_email": "board@board.example"}
        organisation.policy_version += 1
        organisation.save()
        unanswered.sweep_due(now=unheard.due_at + timedelta(minutes=1))
        html = board.get(change_page(unheard)).content.decode()
        assert "notice by email" in html
        assert "got no notice" not in html + board.get("/admin/").content.decode()


class TestTheThread:
    def test_is_one_page_from_the_worker_to_the_board(self, observer, chain):
        for row in Escalation.objects.all():
            html = observer.get(change_page(row)).content.decode()
            steps = [
                "backend_worker",
                "passed on by it_manager",
                "no answer by",
                "notice by webhook",
            ]
            places = [html.index(step) for step in steps]
            assert places == sorted(places)
            assert html.count('class="nx-card nx-mail') == 3, "two mails and the notice back"
            assert HOSTILE not in html

    def test_shows_what_the_board_answered(self, board, chain):
        answer(board, chain)
        html = board.get(change_page(chain)).content.decode()
        assert "answered by board" in html
        assert ", late" in html
        assert "Buy it." in html
        assert "/answer/" not in html

    def test_stands_at_each_of_its_mails(self, observer, chain):
        for mail in Mail.objects.exclude(from_agent="system"):
            html = observer.get(change_page(mail)).content.decode()
            assert "passed on by it_manager" in html


class TestAnAnswer:
    def test_of_the_board_reaches_the_sender(self, board, chain):
        assert answer(board, chain).status_code == 302
        mail = Mail.objects.get(from_agent="board")
        assert (mail.to_agent, mail.body, mail.reply_to_id) == (
            "it_manager", "Buy it.", chain.mail_id,
        )  # fmt: skip
        event = Event.objects.get(action="escalation.answered")
        assert (event.actor, event.reason) == ("human:board", "Buy it.")

    def test_to_a_stale_page_is_refused(self, board, chain, company):
        page = act_page(chain, "answer")
        data = filled(board, page, "act-form", reply="Buy it.")
        company.call(
            "ceo", "send_mail", to="it_manager", type="info", subject="Re", body="Yes.",
            reply_to=chain.mail_id,
        )  # fmt: skip
        before = Mail.objects.count()
        assert board.post(page, data).status_code == 200
        assert refused().code == "INVALID_TRANSITION"
        assert Mail.objects.count() == before
        assert "is not possible now" in board.get(page).content.decode()

    def test_to_another_version_is_refused(self, board, chain):
        assert answer(board, chain, version="1").status_code == 200
        assert refused().code == "VERSION_MISMATCH"
        assert not Mail.objects.filter(from_agent="board").exists()

    def test_names_all_that_it_answers(self, board, chain, company):
        company.call("it_manager", "escalate", subject="No power", body="Since noon.")
        html = board.get(act_page(chain, "answer")).content.decode()
        assert "It also answers" in html
        assert "No power: Since noon." in html
        assert answer(board, chain).status_code == 302
        states = Escalation.objects.filter(sender=chain.sender).values_list("state", flat=True)
        assert list(states) == ["answered", "answered"]

    def test_says_how_many_more_it_answers(self, board, chain, company):
        for number in range(21):
            company.call("it_manager", "escalate", subject=f"Disk {number}", body="Full.")
        html = board.get(act_page(chain, "answer")).content.decode()
        assert "1 more, on the page of the thread" in html
        assert html.count("It also answers") == 21

    def test_answers_nothing_that_its_page_did_not_show(self, board, chain, company):
        page = act_page(chain, "answer")
        data = filled(board, page, "act-form", reply="Buy it.")
        made = company.call("it_manager", "escalate", subject="No power", body="Since noon.")
        assert board.post(page, data).status_code == 200
        assert refused().code == "VERSION_MISMATCH"
        assert not Mail.objects.filter(from_agent="board").exists()
        assert Escalation.objects.get(id=made.result["escalation_id"]).state == "open"

    @pytest.mark.parametrize("changes", [{"reply": ""}, {"reply": " \n"}, {"version": ""}])
    def test_says_something_about_a_version(self, board, chain, changes):
        page = act_page(chain, "answer")
        data = filled(board, page, "act-form", **{"reply": "Buy it.", **changes})
        assert board.post(page, data).status_code == 200
        assert not Mail.objects.filter(from_agent="board").exists()

    @pytest.mark.parametrize("desk", OTHERS)
    def test_is_the_boards_alone(self, sign_in, chain, desk):
        client, page = sign_in(desk), act_page(chain, "answer")
        assert client.get(page).status_code == 403
        assert client.post(page, {"reply": "Mine.", "version": "2"}).status_code == 403
        assert refused().code == "NOT_YOURS"
        assert Escalation.objects.get(id=chain.id).state == "unanswered"


class TestANotice:
    def test_that_was_given_up_is_seen_and_sent_again_by_the_board(self, board, dead):
        html = board.get(list_page(OutgoingNotice)).content.decode()
        assert "NoticeRefused: 500" in html
        assert "dead" in html
        page = act_page(dead, "resend")
        again = board.post(page, filled(board, page, "act-form", reason="It is up again."))
        assert again.status_code == 302
        dead = OutgoingNotice.objects.get(id=dead.id)
        assert (dead.state, dead.attempts) == ("pending", 0)
        event = Event.objects.get(action="notice.resent")
        assert (event.actor, event.reason) == ("human:board", "It is up again.")
        assert "notice.resent" in board.get(page.replace("resend", "history")).content.decode()

    def test_goes_nowhere_else_than_its_page_said(self, board, dead):
        """Another person may have changed the address while the page was open."""
        page = act_page(dead, "resend")
        read = filled(board, page, "act-form", reason="It is up again.")
        call_command("org", "set", "nexus", "board_webhook=https://other.example/hook")
        assert "changed after you" in board.post(page, read).content.decode()
        assert refused().code == "VERSION_MISMATCH"
        assert OutgoingNotice.objects.get(id=dead.id).state == "dead"

    def test_that_waits_is_not(self, board, dead):
        OutgoingNotice.objects.update(state="pending")
        page = act_page(dead, "resend")
        assert "is not possible now" in board.get(page).content.decode()
        version = Organisation.objects.get().policy_version
        assert board.post(page, {"reason": "Now.", "version": version}).status_code == 200
        assert refused().code == "INVALID_TRANSITION"

    @pytest.mark.parametrize("desk", OTHERS)
    def test_is_sent_again_by_nobody_else(self, sign_in, dead, desk):
        client, page = sign_in(desk), act_page(dead, "resend")
        assert {client.get(page).status_code, client.post(page, {"reason": "x"}).status_code} == {
            403
        }
        dead = OutgoingNotice.objects.get(id=dead.id)
        assert dead.state == "dead"
