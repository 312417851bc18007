"""Many at once: sends, a channel that closes meanwhile, an agent that leaves, sweeps, readers."""

import threading
from copy import copy
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from contracts import closing
from contracts.issuing.rules import RequestedChannel
from contracts.vocabulary import ContractOutcome
from core.actions import Action
from core.decision import Code
from core.events import Event as LedgerEvent
from ledger.models import Event
from mailroom import inbox, rules, services
from mailroom.board_answers import mark_report_read
from mailroom.escalations import answers, threads
from mailroom.escalations import services as escalations
from mailroom.escalations import timeouts as unanswered
from mailroom.models import Escalation, Mail, OutgoingNotice
from mailroom.outgoing import outbox
from orgchart.models import Agent
from tests.company import load_company
from tests.concurrency import at_once
from tests.contracts import world as contracts
from tests.contracts.world import refusal
from tests.mailroom.world import configure, draft, notify_board
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def company(transactional_db):
    return load_company("nexus")


def sender(company, who="backend_worker", to="it_manager", **fields):
    caller = company.caller(who)
    return lambda: services.send_mail(caller=caller, draft=draft(to, **fields), now=timezone.now())[
        "mail_id"
    ]


class Held:
    """A transaction of another connection, open until it is told to end."""

    def __init__(self, act):
        self.act, self.ready, self.end = act, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            with transaction.atomic():
                self.act()
                self.ready.set()
                self.end.wait(PATIENCE)
        finally:
            connection.close()

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join(PATIENCE)


class TestSendsAtOnce:
    def test_all_arrive_each_with_an_id_and_an_event_of_its_own(self, company):
        made = at_once([sender(company) for _ in range(16)])
        assert len(set(made)) == 16
        assert Mail.objects.count() == Event.objects.filter(action="mail.delivered").count() == 16


class TestAChannelThatCloses:
    @pytest.fixture
    def contract(self, company):
        wish = RequestedChannel("frontend_worker", "product_manager", frozenset({"question"}))
        return contracts.issue(company, "frontend_worker", grants=[wish])

    def closer(self, company, contract):
        caller = company.caller("it_manager")
        return lambda: closing.close_contract(
            contract_id=contract,
            outcome=ContractOutcome.CANCELLED,
            reason="over",
            expected_version=None,
            caller=caller,
            now=timezone.now(),
        )["state"]

    def test_while_a_mail_passes_lets_it_in_and_no_other(self, company, contract):
        question = {"mail_type": "question", "contract_ref": contract}
        send = sender(company, "frontend_worker", "product_manager", **question)
        close = self.closer(company, contract)
        with Held(send):
            closing_now = threading.Thread(target=lambda: (close(), connection.close()))
            closing_now.start()
            closing_now.join(0.3)
            assert closing_now.is_alive(), "the closing waits for the mail that is passing"
        closing_now.join(PATIENCE)
        assert Mail.objects.filter(mail_type="question").count() == 1
        assert refusal(send).code == "CONTRACT_REQUIRED"

    def test_before_a_mail_passes_refuses_it(self, company, contract):
        question = {"mail_type": "question", "contract_ref": contract}
        send = sender(company, "frontend_worker", "product_manager", **question)
        ends = []

        def sends():
            try:
                ends.append(refusal(send).code)
            finally:
                connection.close()

        with Held(self.closer(company, contract)):
            waiting = threading.Thread(target=sends)
            waiting.start()
            waiting.join(0.3)
            assert waiting.is_alive(), "the mail waits to see how the closing ends"
        waiting.join(PATIENCE)
        assert ends == ["CONTRACT_REQUIRED"]
        assert not Mail.objects.filter(mail_type="question").exists()

    def test_at_the_same_moment_has_one_of_two_ends(self, company, contract):
        question = {"mail_type": "question", "contract_ref": contract}
        send = sender(company, "frontend_worker", "product_manager", **question)
        mail, state = at_once([send, self.closer(company, contract)])
        assert state == "cancelled"
        assert Mail.objects.filter(mail_type="question").count() == (mail != "CONTRACT_REQUIRED")


class TestAnAgentThatLeaves:
    def test_before_the_mail_is_in_gets_none(self, company):
        send = sender(company)
        Agent.objects.filter(handle="it_manager").update(active=False)
        assert refusal(send).code == "RECIPIENT_INACTIVE"
        assert not Mail.objects.exists()

    def test_itself_sends_nothing_more_with_a_caller_of_before(self, company):
        send = sender(company)
        Agent.objects.filter(handle="backend_worker").update(active=False)
        assert refusal(send).code == "RECIPIENT_INACTIVE"


class TestReadersAtOnce:
    def reader(self, company, mail, at):
        caller = company.caller("it_manager")
        return lambda: inbox.read_mail(caller=caller, mail_id=mail, now=at)["read_at"]

    def test_leave_one_time_and_one_event(self, company):
        mail = sender(company)()
        times = at_once([self.reader(company, mail, timezone.now()) for _ in range(6)])
        assert len(set(times)) == 1
        assert Event.objects.filter(action="mail.read").count() == 1

    def test_keep_the_first_ones_time(self, company):
        mail, first = sender(company)(), timezone.now()
        later = self.reader(company, mail, first + timedelta(seconds=9))
        seen = []

        def reads():
            try:
                seen.append(later())
            finally:
                connection.close()

        with Held(self.reader(company, mail, first)):
            waiting = threading.Thread(target=reads)
            waiting.start()
            waiting.join(0.3)
            assert waiting.is_alive(), "the second reader waits for the first"
        waiting.join(PATIENCE)
        assert seen == [first]
        assert Event.objects.filter(action="mail.read").count() == 1


class TestSweepsAtOnce:
    def test_are_as_few_in_a_thread_where_they_are_sent_at_once(self, company, monkeypatch):
        """Spec: escalation 20."""
        monkeypatch.setattr(rules, "MOST_WAITING", 3)
        caller = company.caller("backend_worker")

        def escalate():
            return escalations.escalate(
                caller=caller, subject="Help", body="Now.", now=timezone.now()
            )

        assert at_once([escalate] * 6).count(Code.QUOTA_EXCEEDED) == 3
        assert Escalation.objects.count() == 3

    def test_settle_each_escalation_once(self, company):
        caller = company.caller("backend_worker")
        for _ in range(12):
            escalations.escalate(caller=caller, subject="Help", body="Now.", now=timezone.now())
        late = timezone.now() + timedelta(days=1)
        swept = at_once([lambda: unanswered.sweep_due(now=late)] * 3)
        assert sum(swept) == 12
        assert Escalation.objects.filter(state="unanswered").count() == 12
        assert Event.objects.filter(action="escalation.unanswered").count() == 12
        assert Mail.objects.filter(from_agent="system", to_agent="backend_worker").count() == 12

    def test_and_an_answer_end_in_one_state(self, company):
        caller, boss = company.caller("backend_worker"), company.caller("it_manager")
        made = escalations.escalate(caller=caller, subject="Help", body="Now.", now=timezone.now())
        late = timezone.now() + timedelta(days=1)
        answer = draft("backend_worker", reply_to=made["mail_id"])
        at_once(
            [
                lambda: unanswered.sweep_due(now=late),
                lambda: services.send_mail(caller=boss, draft=answer, now=timezone.now()),
            ]
        )
        row = Escalation.objects.get()
        silent = Event.objects.filter(action="escalation.unanswered").count()
        answered = Event.objects.get(action="escalation.answered")
        assert (row.state, row.version) == ("answered", 2 + silent)
        assert silent == (row.unanswered_at is not None), "whoever came first was not forgotten"
        assert answered.details["late"] is bool(silent)


class TestOneThread:
    """Escalations at once of one sender to one superior: the database knows one open thread."""

    def test_is_begun_once_by_whichever_tool(self, company):
        caller = company.caller("backend_worker")
        by_mail = sender(company, mail_type="escalation")

        def by_tool():
            made = escalations.escalate(
                caller=caller, subject="Help", body="Now.", now=timezone.now()
            )
            return made["mail_id"]

        at_once([by_tool, by_mail] * 6)
        rows = Escalation.objects.order_by("id")
        assert rows.count() == 12
        assert rows.filter(first=None).count() == 1
        late = timezone.now() + timedelta(days=1)
        assert unanswered.sweep_due(now=late) == 12
        assert Mail.objects.filter(from_agent="system", to_agent="ceo").count() == 1

    def test_is_open_or_answered_as_a_whole(self, company):
        """Escalations, an answer and a sweep at once: no row is left behind its thread."""
        caller, boss = company.caller("backend_worker"), company.caller("it_manager")
        made = escalations.escalate(caller=caller, subject="Help", body="Now.", now=timezone.now())
        late = timezone.now() + timedelta(days=1)
        answer = draft("backend_worker", reply_to=made["mail_id"])

        def again():
            return escalations.escalate(caller=caller, subject="Help", body="Now.", now=late)

        at_once(
            [
                again,
                lambda: services.send_mail(caller=boss, draft=answer, now=late),
                again,
                lambda: unanswered.sweep_due(now=late),
                again,
            ]
        )
        for first in Escalation.objects.filter(first=None):
            states = {row.state in ("open", "unanswered") for row in first.thread.all()}
            assert states <= {first.state in ("open", "unanswered")}
        assert Escalation.objects.filter(first=None).count() <= 2 + 1  # the CEO's notice

    def test_that_two_pass_on_to_each_others_superior_does_not_lock_up(self, company):
        caller, boss = company.caller("backend_worker"), company.caller("it_manager")
        made = escalations.escalate(caller=caller, subject="Help", body="Now.", now=timezone.now())
        late = timezone.now() + timedelta(days=1)

        def pass_on():
            return escalations.escalate(
                caller=boss,
                subject="Help",
                body="Me.",
                follows=int(made["escalation_id"]),
                now=late,
            )

        at_once([pass_on, lambda: unanswered.sweep_due(now=late), pass_on])
        assert Escalation.objects.get(id=made["escalation_id"]).state == "passed_on"


class TestStepsAtOnce:
    """Many take the same step of one row: exactly one does, and leaves one event."""

    @pytest.fixture
    def made(self, company):
        caller = company.caller("backend_worker")
        return escalations.escalate(caller=caller, subject="Help", body="Now.", now=timezone.now())

    @pytest.fixture
    def notice(self, company):
        configure(company, board_webhook="https://board.example/hook")
        notify_board(company, subject="An escalation has no answer")
        return OutgoingNotice.objects.get()

    def answerer(self, company, made):
        person = company.person("Board")
        return lambda: answers.answer_as_person(
            escalation_id=int(made["escalation_id"]),
            text="Do this.",
            expected_version=1,
            person=person,
            now=timezone.now(),
        )

    def test_answer_an_escalation_once(self, company, made):
        ends = at_once([self.answerer(company, made)] * 6)
        assert sorted(end == "INVALID_TRANSITION" for end in ends) == [False] + [True] * 5
        assert only_event("escalation.answered")
        assert Mail.objects.filter(from_agent="board").count() == 1

    def test_pass_an_escalation_on_once(self, company, made):
        boss, follows = company.caller("it_manager"), int(made["escalation_id"])
        at_once(
            [
                lambda: escalations.escalate(
                    caller=boss, subject="Help", body="Me.", follows=follows, now=timezone.now()
                )
            ]
            * 6
        )
        row = Escalation.objects.get(id=follows)
        assert (row.state, row.version) == ("passed_on", 2)
        assert only_event("escalation.passed_on")

    def test_time_an_escalation_out_once_without_a_lock_too(self, company, made):
        rows = [Escalation.objects.get(id=made["escalation_id"]) for _ in range(6)]

        def time_out(row):
            row.time_out(at=timezone.now())
            event = LedgerEvent.by(company.system, Action.ESCALATION_UNANSWERED, at=timezone.now())
            threads.save_step(row, "open", event)
            return "timed out"

        ends = at_once([partial(time_out, row) for row in rows])
        assert sorted(ends) == ["VERSION_MISMATCH"] * 5 + ["timed out"]
        assert only_event("escalation.unanswered")

    def test_mark_a_notice_as_sent_once(self, notice):
        (claimed,) = outbox._claim("webhook", timezone.now())
        settle_six_times(claimed, outbox.Attempt())
        assert OutgoingNotice.objects.get().state == "sent"
        assert only_event("notice.sent")

    def test_give_a_notice_up_once(self, notice):
        OutgoingNotice.objects.update(attempts=outbox.ATTEMPTS - 1)
        (claimed,) = outbox._claim("webhook", timezone.now())
        settle_six_times(claimed, outbox.Attempt(problem="OSError: nothing listens there"))
        assert OutgoingNotice.objects.get().state == "dead"
        assert only_event("notice.dead")

    def test_resend_notices_once_with_others(self, company, notice):
        for _ in range(4):
            notify_board(company, subject="An escalation has no answer")
        OutgoingNotice.objects.update(state="dead")
        ids = OutgoingNotice.objects.values_list("id", flat=True)
        resend = partial(
            outbox.resend, reason="r", caller=company.person("Board"), now=timezone.now()
        )
        ends = at_once([partial(resend, notice_id=each, with_others=True) for each in ids])
        assert sorted(map(str, ends)) == [str(len(ids)), *["INVALID_TRANSITION"] * (len(ids) - 1)]
        assert Event.objects.filter(action="notice.resent").count() == len(ids)

    def test_mark_mails_to_the_board_as_read_once_with_earlier_ones(self, company):
        mails = [
            company.call("ceo", "send_mail", to="board", type="report", subject="s", body="b")
            for _ in range(6)
        ]
        mark = partial(
            mark_report_read, person=company.person("Board"), now=timezone.now(), with_earlier=True
        )
        ends = at_once([partial(mark, mail_id=each.result["mail_id"]) for each in mails])
        assert sum(ends) == 6
        assert Mail.objects.filter(recipient=None, status="read", version=2).count() == 6
        assert Event.objects.filter(action="mail.read").count() == 6

    def test_resend_a_notice_once(self, company, notice):
        OutgoingNotice.objects.update(state="dead")
        resend = partial(
            outbox.resend,
            notice_id=notice.id,
            reason="It is up again.",
            caller=company.person("Board"),
            now=timezone.now(),
        )
        ends = at_once([resend] * 6)
        assert sorted(str(end) for end in ends) == ["1", *["INVALID_TRANSITION"] * 5]
        assert only_event("notice.resent")


def only_event(action):
    return Event.objects.filter(action=action).count() == 1


def settle_six_times(notice, attempt):
    at_once([partial(outbox._settle, copy(notice), attempt, timezone.now()) for _ in range(6)])
