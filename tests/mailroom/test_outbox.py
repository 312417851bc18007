"""Notices leave the building: signed, retried until they arrive, and never to an inside address."""

import itertools
import random
import threading
import uuid
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from functools import partial

import httpx
import pytest
from django.core import mail as postbox
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from standardwebhooks import Webhook

from core.decision import Denied
from ledger.models import Event
from mailroom.models import OutgoingNotice
from mailroom.outgoing import outbox, webhook
from tests.company import load_company
from tests.mailroom.receiver import receiving
from tests.mailroom.world import NOW, after, configure, notify_board
from tests.patience import PATIENCE
from tests.plans import renew_statistics, rows_touched


@pytest.fixture(scope="module")
def server():
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def receiver(server):
    server.arrived.clear()
    server.cut_off.clear()
    server.script = iter(())
    return server


@pytest.fixture
def company(nexus, receiver):
    configure(nexus, board_webhook=receiver.url, allow_internal_addresses=True)
    return nexus


def notify(company, subject="An escalation has no answer"):
    return notify_board(company, subject=subject)


def notice():
    return OutgoingNotice.objects.get()


class TestWriting:
    def test_makes_a_row_for_each_channel_that_there_is(self, nexus):
        assert notify(nexus) == 0
        configure(nexus, board_webhook="https://b.example/x", board_email="b@b.example")
        assert notify(nexus) == 2

    def test_is_gone_with_the_transaction_of_its_cause(self, company):
        with transaction.atomic():
            notify(company)
            transaction.set_rollback(True)
        assert not OutgoingNotice.objects.exists()


class TestSending:
    def test_posts_it_signed_with_the_organisations_secret(self, company, receiver):
        notify(company)
        assert outbox.send_due(now=NOW) == 1
        ((headers, body),) = receiver.arrived
        signer = Webhook(webhook.secret_of("nexus"))
        assert signer.verify(body, headers)["type"] == "escalation.unanswered"
        assert headers["webhook-id"] == str(notice().event_id)
        assert notice().state == "sent"
        assert Event.objects.filter(action="notice.sent").count() == 1

    def test_is_verified_by_the_secret_that_its_receiver_was_given(self, company, receiver, capsys):
        call_command("board_webhook", "nexus")
        address, secret = capsys.readouterr().out.split()
        assert address == receiver.url
        notify(company)
        outbox.send_due(now=NOW)
        ((headers, body),) = receiver.arrived
        said = Webhook(secret).verify(body, headers)
        assert said["data"]["body"] == "Nobody answers."

    def test_secret_is_given_before_there_is_an_address(self, nexus, capsys):
        call_command("board_webhook", "nexus")
        said = capsys.readouterr()
        assert said.out.split() == [webhook.secret_of("nexus")]
        assert "org set nexus board_webhook=" in said.err

    def test_secret_of_an_unknown_organisation_is_not_made_up(self, nexus):
        with pytest.raises(CommandError, match="no organisation nobody"):
            call_command("board_webhook", "nobody")

    def test_with_another_secret_is_not_believed(self, company, receiver):
        notify(company)
        outbox.send_due(now=NOW)
        ((headers, body),) = receiver.arrived
        with pytest.raises(Exception, match="signature"):
            Webhook(webhook.secret_of("dev-team")).verify(body, headers)

    def test_mails_it_to_people(self, nexus):
        configure(nexus, board_email="board@b.example")
        notify(nexus, subject="Two\r\nlines\r")
        outbox.send_due(now=NOW)
        (letter,) = postbox.outbox
        assert (letter.subject, letter.to) == ("Two lines", ["board@b.example"])
        assert str(notice().event_id) in letter.extra_headers["Message-ID"]

    def test_looks_only_at_what_is_due(self, company, receiver):
        notify(company)
        assert outbox.send_due(now=after(seconds=-1)) == 0
        assert receiver.arrived == []

    @pytest.mark.parametrize("answer", [500, 503, 404, 400, 302, "hang up"])
    def test_tries_again_what_was_not_taken_under_the_same_id(self, company, receiver, answer):
        receiver.script = iter([answer])
        notify(company)
        outbox.send_due(now=NOW)
        row = notice()
        assert (row.state, row.attempts) == ("pending", 1)
        assert row.last_problem
        assert after(seconds=2.4) <= row.due_at
        assert row.settled_at is None
        assert outbox.send_due(now=after(seconds=1)) == 0
        assert outbox.send_due(now=after(seconds=60)) == 1
        assert notice().state == "sent"
        assert len(set(receiver.ids)) == 1 < len(receiver.ids)

    def test_waits_with_all_for_a_receiver_as_long_as_it_asks(self, company, receiver):
        """Spec: escalation 18."""
        receiver.script = iter([(503, {"Retry-After": "600"})])
        notify(company)
        notify(company, subject="Another one")
        assert outbox.send_due(now=NOW) == 1
        for row in OutgoingNotice.objects.all():
            assert after(seconds=600) <= row.due_at <= after(seconds=630)
        assert outbox.send_due(now=after(seconds=599)) == 0
        assert outbox.send_due(now=after(seconds=630)) == 2

    def test_ends_at_once_where_the_receiver_says_that_it_is_gone(self, company, receiver):
        receiver.script = iter([410])
        notify(company)
        outbox.send_due(now=NOW)
        assert (notice().state, notice().attempts) == ("dead", 1)
        assert "answered 410" in notice().last_problem

    @pytest.mark.parametrize("seed", [7, 8])
    def test_delivers_everything_to_a_receiver_that_fails_is_late_and_says_it_twice(
        self, company, receiver, monkeypatch, seed
    ):
        monkeypatch.setattr(webhook, "TIMEOUT", httpx.Timeout(0.4))
        dice = random.Random(seed)
        answers, odds = [500, "hang up", "late", "twice", 200], [25, 5, 5, 20, 45]
        receiver.script = iter(lambda: dice.choices(answers, odds)[0], None)
        for n in range(40):
            notify(company, subject=f"Notice {n}")
        at = 0
        while OutgoingNotice.objects.filter(state="pending").exists():
            outbox.send_due(now=after(seconds=at))
            at += 120
            assert at < 86_400
        assert OutgoingNotice.objects.filter(state="sent").count() == 40
        assert Event.objects.filter(action="notice.sent").count() == 40
        signer = Webhook(webhook.secret_of("nexus"))
        ids = {}
        for headers, body in receiver.arrived:
            said = signer.verify(body, headers)["data"]["subject"]
            ids.setdefault(said, set()).add(headers["webhook-id"])
        assert set(ids) == {f"Notice {n}" for n in range(40)}
        assert all(len(each) == 1 for each in ids.values()), "one id for all its attempts"
        assert len(set.union(*ids.values())) == 40

    def test_ends_an_answer_that_comes_drop_by_drop(self, company, receiver, monkeypatch):
        """Each drop begins the client's own patience anew."""
        monkeypatch.setattr(webhook, "LONGEST", 0.4)
        receiver.script = iter(["drop by drop"])
        notify(company)
        outbox.send_due(now=NOW)
        assert receiver.cut_off.wait(PATIENCE), "the receiver could let it drip to its own end"
        assert notice().state == "pending"
        assert notice().last_problem

    def test_takes_few_at_a_time_and_goes_by_the_time_it_is_by_then(
        self, company, receiver, monkeypatch
    ):
        """A claim that was made long ago by the look's first hour would be anybody's at once."""
        ticking = itertools.count(0, 2)
        monkeypatch.setattr(outbox.time, "monotonic", lambda: float(next(ticking)))
        receiver.script = iter([500] * 9)
        for n in range(9):
            notify(company, subject=f"Notice {n}")
        sent = outbox.send_due(now=NOW)
        assert 0 < sent < 9, "the rest is for the next look"
        tried = OutgoingNotice.objects.filter(attempts=1)
        assert tried.count() == sent
        assert len({row.due_at for row in tried}) == sent

    def test_of_one_organisation_does_not_wait_for_the_receiver_of_another(
        self, company, receiver, monkeypatch
    ):
        """All that one has due is older than the other's, and would fill all places."""
        other = load_company("soloqueue")
        configure(other, board_webhook=receiver.url, allow_internal_addresses=True)
        for n in range(2 * outbox.AT_ONCE["webhook"]):
            notify(company, subject=f"Notice {n}")
        notify_board(other, subject="Only this one", at=NOW + timedelta(seconds=1))
        arrived = threading.Event()

        def fail(row, _policy):
            if row.organisation_id == other.organisation.id:
                arrived.set()
            elif not arrived.wait(PATIENCE):
                return TimeoutError()
            return None

        monkeypatch.setattr(outbox, "_failure", fail)
        outbox.send_due(now=NOW + timedelta(seconds=2))
        assert OutgoingNotice.objects.get(organisation=other.organisation).state == "sent"
        assert not OutgoingNotice.objects.exclude(last_problem="").exists()

    def test_gives_its_place_to_the_next_however_long_others_take(self, company, monkeypatch):
        """A round that waits for the slowest of fifty would take its time of all organisations."""
        monkeypatch.setattr(outbox, "AT_ONCE", {"webhook": 2, "email": 1})
        others = [load_company(name) for name in ("soloqueue", "dev-team")]
        for each in others:
            configure(each, board_webhook="https://b.example/x")
            notify(each)
        notify(company)
        tried, last = [], threading.Event()

        def fail(row, _policy):
            tried.append(row)
            number = len(tried)
            if number == 3:
                last.set()
            return TimeoutError() if number == 1 and not last.wait(PATIENCE) else None

        monkeypatch.setattr(outbox, "_failure", fail)
        assert outbox.send_due(now=NOW) == 3
        assert not OutgoingNotice.objects.exclude(state="sent").exists()

    def test_waits_for_the_receivers_of_many_organisations_together(self, company, monkeypatch):
        """Each of two hundred dead ones would take ten seconds of all others (escalation 18)."""
        other = load_company("soloqueue")
        configure(other, board_webhook="https://b.example/x")
        notify(company)
        notify(other)
        together = threading.Barrier(2)
        monkeypatch.setattr(outbox, "_failure", lambda *_: together.wait(PATIENCE) and None)
        assert outbox.send_due(now=NOW) == 2
        assert not together.broken

    def test_asks_the_mail_server_for_few_sessions_at_once(self, company, monkeypatch):
        monkeypatch.setattr(outbox, "AT_ONCE", {"webhook": 9, "email": 1})
        other = load_company("soloqueue")
        for each in (company, other):
            configure(each, board_webhook="", board_email="b@b.example")
            notify(each)
        (one,) = outbox._claim("email", NOW)
        assert outbox._claim("email", NOW, [one]) == []

    def test_by_webhook_waits_for_no_email(self, company, receiver, monkeypatch):
        """Also of its own organisation: the mail server may take its time for each."""
        configure(company, board_email="b@b.example")
        notify(company)
        notify_board(company, subject="Another one", at=NOW + timedelta(seconds=1))
        arrived, real = threading.Event(), outbox._failure

        def fail(row, policy):
            if row.channel == "email":
                return None if arrived.wait(PATIENCE) else TimeoutError()
            failure = real(row, policy)
            if len(receiver.arrived) == 2:
                arrived.set()
            return failure

        monkeypatch.setattr(outbox, "_failure", fail)
        outbox.send_due(now=NOW + timedelta(seconds=2))
        assert not OutgoingNotice.objects.exclude(state="sent").exists()

    def test_leaves_a_receiver_that_hangs_alone_for_a_minute(self, company, monkeypatch):
        """Its other notices are older than those of all others, and each would hang as well."""
        other = load_company("soloqueue")
        configure(other, board_webhook="https://b.example/x")
        for n in range(3):
            notify(company, subject=f"Notice {n}")
        notify_board(company, subject="Due in a while", at=NOW + timedelta(seconds=30))
        notify_board(other, subject="Only this one", at=NOW + timedelta(seconds=1))
        passed = [0.0]

        def fail(row, _policy):
            hangs = row.organisation_id == company.organisation.id
            passed[0] += webhook.LONGEST * hangs
            return TimeoutError() if hangs else None

        def tried():
            return sum(OutgoingNotice.objects.values_list("attempts", flat=True))

        monkeypatch.setattr(outbox, "AT_ONCE", {"webhook": 1, "email": 1})
        monkeypatch.setattr(outbox, "_failure", fail)
        monkeypatch.setattr(outbox.time, "monotonic", lambda: passed[0])
        outbox.send_due(now=NOW + timedelta(seconds=2))
        assert OutgoingNotice.objects.get(organisation=other.organisation).state == "sent"
        assert tried() == 2
        assert outbox.send_due(now=NOW + timedelta(seconds=60)) == 0
        assert tried() == 2
        outbox.send_due(now=NOW + timedelta(seconds=80))
        assert tried() == 3

    def test_does_not_wait_for_what_slow_receivers_have_due_before(self, company, monkeypatch):
        """Each takes all of its notices, and as much time as a run has (Spec: escalation 18)."""
        other = load_company("soloqueue")
        configure(other, board_webhook="https://b.example/x")
        runs = 40
        for n in range(runs):
            notify(company, subject=f"Notice {n}")
        notify_board(other, subject="Only this one", at=NOW + timedelta(seconds=1))
        passed = itertools.count(0, outbox.BUDGET + 1)
        monkeypatch.setattr(outbox, "AT_ONCE", {"webhook": 1, "email": 1})
        monkeypatch.setattr(outbox, "_failure", lambda *_: None)
        monkeypatch.setattr(outbox.time, "monotonic", lambda: float(next(passed)))
        for n in range(runs):
            outbox.send_due(now=NOW + timedelta(seconds=2 + n))
        assert OutgoingNotice.objects.get(organisation=other.organisation).state == "sent"
        assert OutgoingNotice.objects.filter(state="pending").exists()

    def test_reads_few_rows_however_many_an_organisation_has_due(self, company):
        notify(company)
        one = notice()
        OutgoingNotice.objects.bulk_create(
            [
                OutgoingNotice(
                    organisation_id=one.organisation_id,
                    event_id=uuid.uuid4(),
                    channel=one.channel,
                    target=one.target,
                    payload=one.payload,
                    due_at=after(seconds=-n),
                    created_at=NOW,
                )
                for n in range(3000)
            ]
        )
        renew_statistics("mailroom_outgoingnotice")
        with CaptureQueriesContext(connection) as done:
            assert len(outbox._claim("webhook", NOW)) == 1
        read = [each["sql"] for each in done if each["sql"].startswith("SELECT")]
        assert all(rows_touched(sql, None, kept=False) < 100 for sql in read)

    def test_of_slow_receivers_ends_before_another_sender_takes_it(self):
        assert outbox.CLAIMED_FOR.total_seconds() > webhook.LONGEST + webhook.NAME_SERVER

    def test_that_is_answered_too_late_comes_again_with_the_id_that_tells(
        self, company, receiver, monkeypatch
    ):
        monkeypatch.setattr(webhook, "TIMEOUT", httpx.Timeout(PATIENCE, read=0.3))
        receiver.script = iter(["late"])
        notify(company)
        outbox.send_due(now=NOW)
        assert notice().last_problem.startswith("ReadTimeout")
        monkeypatch.setattr(webhook, "TIMEOUT", httpx.Timeout(PATIENCE))
        outbox.send_due(now=after(seconds=60))
        assert notice().state == "sent"
        assert len(receiver.ids) == 2
        assert len(set(receiver.ids)) == 1

    def test_gives_up_after_twelve_attempts_and_a_person_may_start_again(self, company, receiver):
        receiver.script = iter([500] * outbox.ATTEMPTS)
        notify(company)
        for attempt in range(outbox.ATTEMPTS):
            assert notice().state == "pending"
            outbox.send_due(now=after(hours=7 * attempt))
        assert (notice().state, notice().attempts) == ("dead", outbox.ATTEMPTS)
        assert outbox.send_due(now=after(days=99)) == 0
        assert Event.objects.filter(action="notice.dead").count() == 1
        later = after(days=100)
        resend(company.person("Board"), later)
        assert outbox.send_due(now=later) == 1
        assert notice().state == "sent"
        assert len(set(receiver.ids)) == 1

    def test_by_who_died_is_taken_over_after_a_minute(self, company, receiver):
        notify(company)
        outbox._claim("webhook", NOW)
        assert outbox.send_due(now=after(seconds=30)) == 0
        assert outbox.send_due(now=after(seconds=61)) == 1
        assert receiver.ids == [str(notice().event_id)]

    def test_that_settles_after_another_took_over_changes_nothing(self, company, receiver):
        notify(company)
        (first,) = outbox._claim("webhook", NOW)
        outbox.send_due(now=after(seconds=61))
        outbox._settle(first, outbox.Attempt(), after(seconds=62))
        assert (notice().state, notice().attempts) == ("sent", 2)
        assert Event.objects.filter(action="notice.sent").count() == 1

    @pytest.mark.parametrize(
        ("office", "state", "elsewhere", "code"),
        [
            ("Board", "dead", 1, "NOT_FOUND"),
            ("Board", "pending", 0, "INVALID_TRANSITION"),
            ("Board", "sent", 0, "INVALID_TRANSITION"),
            ("HR", "dead", 0, "NOT_YOURS"),
            ("Observer", "dead", 0, "NOT_YOURS"),
        ],
    )
    def test_is_begun_again_by_the_board_in_its_organisation_and_only_when_dead(
        self, company, office, state, elsewhere, code
    ):
        notify(company)
        OutgoingNotice.objects.update(state=state, attempts=3)
        person = company.person(office)
        with pytest.raises(Denied) as refusal:
            resend(replace(person, organisation_id=person.organisation_id + elsewhere), NOW)
        assert refusal.value.deny.code == code
        assert (notice().state, notice().attempts) == (state, 3)

    def test_that_waits_goes_where_the_organisation_is_reached_by_now(self, company, receiver):
        """The receiver that was replaced gets nothing more, also of what it did not take."""
        receiver.script = iter([500])
        notify(company)
        outbox.send_due(now=NOW)
        configure(company, board_webhook=receiver.url + "new")
        outbox.send_due(now=after(seconds=60))
        assert notice().state == "sent"
        assert notice().target == receiver.url + "new"

    def test_goes_nowhere_once_the_organisation_has_no_address(self, company, receiver):
        notify(company)
        configure(company, board_webhook="")
        outbox.send_due(now=NOW)
        assert (notice().state, receiver.arrived) == ("pending", [])
        assert notice().last_problem == "board_webhook is not set any more"
        configure(company, board_webhook=receiver.url)
        outbox.send_due(now=after(seconds=60))
        assert notice().state == "sent"

    def test_again_goes_where_the_organisation_is_reached_by_now(self, company, receiver):
        configure(company, board_webhook="http://127.0.0.1:9/gone")
        notify(company)
        OutgoingNotice.objects.update(state="dead")
        configure(company, board_webhook=receiver.url)
        resend(company.person("Board"), NOW)
        outbox.send_due(now=NOW)
        assert notice().state == "sent"
        assert receiver.ids == [str(notice().event_id)]

    def test_again_goes_with_the_others_of_its_channel_that_failed(self, company, monkeypatch):
        """Spec: clocks 7. After days without a receiver each was sent again by itself."""
        monkeypatch.setattr(outbox, "MOST_RESENT", 2)
        configure(company, board_webhook="http://127.0.0.1:9/gone")
        for _ in range(5):
            notify(company)
        first, sent, mail, *others = OutgoingNotice.objects.order_by("-id")
        OutgoingNotice.objects.update(state="dead")
        OutgoingNotice.objects.filter(id=sent.id).update(state="sent")
        OutgoingNotice.objects.filter(id=mail.id).update(channel="email")
        again = partial(
            outbox.resend, notice_id=first.id, reason="r", caller=company.person("Board"), now=NOW
        )
        assert again(with_others=True) == 3
        pending = OutgoingNotice.objects.filter(state="pending").values_list("id", flat=True)
        assert set(pending) == {first.id, *(each.id for each in others)}
        assert Event.objects.filter(action="notice.resent").count() == 3


def resend(person, now):
    outbox.resend(notice_id=notice().id, reason="It is up again.", caller=person, now=now)


class TestWaiting:
    def test_doubles_with_a_jitter_up_to_six_hours(self):
        for attempt in range(1, 40):
            full = min(6 * 3600, 5 * 2 ** (attempt - 1))
            assert full / 2 <= outbox.wait_after(attempt) <= full


class TestAPause:
    @pytest.mark.parametrize(
        ("asked", "seconds"),
        [
            ("", 0),
            ("0", 0),
            ("90", 90),
            ("-5", 0),
            ("1.5", 0),
            ("3601", 3600),
            ("9" * 9, 3600),
            ("9" * 5000, 0),
            ("soon", 0),
            ("\u0663", 0),
            (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
            (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
            ("Mon, 99 Foo 0000 99:99:99 GMT", 0),
        ],
    )
    def test_is_what_the_receiver_asks_for_and_an_hour_at_most(self, asked, seconds):
        found = webhook.pause_asked(asked, NOW.replace(microsecond=0))
        assert found == timedelta(seconds=seconds)


class TestWhereItGoes:
    def test_inside_only_where_the_organisation_allows_it(self, nexus, receiver):
        configure(nexus, board_webhook=receiver.url)
        notify(nexus)
        outbox.send_due(now=NOW)
        assert receiver.arrived == []
        assert "not a public address" in notice().last_problem

    def test_not_where_a_receiver_redirects_to(self, company, receiver):
        receiver.script = iter([302])
        notify(company)
        outbox.send_due(now=NOW)
        assert len(receiver.arrived) == 1
        assert "302" in notice().last_problem
