"""Mail to the Board over SMTP, to a server that speaks it for real."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta
from email.header import decode_header, make_header

import pytest

from core.wording import Wording
from ledger.models import Event
from mailroom.escalations.timeouts import UNANSWERED
from mailroom.models import OutgoingNotice
from mailroom.outgoing import outbox, smtp
from tests.company import load_company
from tests.mailroom.mail_server import AnyPort, Postbox
from tests.mailroom.world import NOW, configure, notify_board
from tests.patience import PATIENCE


@pytest.fixture
def postbox(settings):
    box = Postbox()
    server = AnyPort(box, hostname="127.0.0.1", port=0)
    server.start()
    settings.EMAIL_BACKEND = "mailroom.outgoing.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = server.port
    yield box
    server.stop()


@pytest.fixture
def notice(nexus):
    configure(nexus, board_email="board@b.example")
    notify_board(nexus, subject="升级 has no answer")
    return OutgoingNotice.objects.get()


def test_arrives_with_its_id_and_its_words(notice, postbox, settings):
    settings.PUBLIC_URL = "https://nexus.example"
    outbox.send_due(now=NOW)
    (letter,) = postbox.letters
    assert letter["Message-ID"] == f"<{notice.event_id}@nexus>"
    assert (letter["To"], letter["From"]) == ("board@b.example", "nexus@localhost")
    first, _, second = letter.get_payload().splitlines()
    assert first == "What waits for you: https://nexus.example/admin/"
    assert second == "Nobody answers."
    notice = OutgoingNotice.objects.get()
    assert notice.state == "sent"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("pay \u202e0001\u202c now", "pay [U+202E]0001[U+202C] now"),
        ("=?utf-8?b?4oCuZXZpbA==?=", "= ?utf-8?b?4oCuZXZpbA== ?="),
        ("pay =?utf-8?q?=31=30?= at\nonce", "pay = ?utf-8?q?=31=30?= at once"),
    ],
)
def test_reads_as_it_was_written(nexus, postbox, written, shown):
    """A text that turns around, or that mail programs decode, is no other text to a person."""
    configure(nexus, board_email="board@b.example")
    notify_board(nexus, subject=written)
    outbox.send_due(now=NOW)
    (letter,) = postbox.letters
    assert str(make_header(decode_header(letter["Subject"]))) == shown


@pytest.mark.parametrize("answer", ["451 try later", "550 no such box"])
def test_is_tried_again_under_the_same_id(notice, postbox, answer):
    postbox.script = iter([answer])
    outbox.send_due(now=NOW)
    notice = OutgoingNotice.objects.get()
    assert (notice.state, notice.attempts, postbox.letters) == ("pending", 1, [])
    assert answer[4:] in notice.last_problem
    outbox.send_due(now=notice.due_at)
    (letter,) = postbox.letters
    assert letter["Message-ID"] == f"<{notice.event_id}@nexus>"


def test_is_sent_where_the_server_took_it_and_ends_badly(notice, postbox):
    """It would come twelve times, and be called given up."""

    async def farewell(*_):
        return "221 " + "x" * 10_000

    postbox.handle_QUIT = farewell
    outbox.send_due(now=NOW)
    assert OutgoingNotice.objects.get().state == "sent"


def test_is_tried_again_where_no_server_answers(notice, settings):
    settings.EMAIL_BACKEND = "mailroom.outgoing.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    outbox.send_due(now=NOW)
    notice = OutgoingNotice.objects.get()
    assert (notice.state, notice.attempts) == ("pending", 1)
    assert "refused" in notice.last_problem


class TestAServerThatIsOneForAll:
    """Spec: escalation 18."""

    @pytest.fixture(autouse=True)
    def emails_of_two(self, notice, monkeypatch):
        """Of two organisations, and each failure counts as one that took long."""
        other = load_company("soloqueue")
        configure(other, board_email="board@c.example")
        notify_board(other, subject="Another one's")
        monkeypatch.setattr(outbox, "SLOW", timedelta(seconds=-1))
        monkeypatch.setattr(outbox, "AT_ONCE", {"webhook": 1, "email": 1})

    def tried(self):
        return sum(OutgoingNotice.objects.values_list("attempts", flat=True))

    def test_is_left_alone_by_all_where_it_gives_no_session(self, settings):
        settings.EMAIL_BACKEND = "mailroom.outgoing.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
        outbox.send_due(now=NOW)
        assert self.tried() == 1
        assert outbox.send_due(now=NOW + timedelta(seconds=50)) == 0
        assert self.tried() == 1

    def test_is_not_left_alone_for_one_letter(self, postbox):
        postbox.script = iter(["451 try later"])
        outbox.send_due(now=NOW)
        assert (self.tried(), len(postbox.letters)) == (2, 1)


def test_is_in_the_language_of_the_installation(nexus, postbox, settings):
    settings.NEXUS_LANGUAGE = "zh-hans"
    configure(nexus, board_email="board@b.example")
    notify_board(nexus, subject=Wording(UNANSWERED, {"organisation": "nexus"}))
    outbox.send_due(now=NOW)
    (letter,) = postbox.letters
    assert str(make_header(decode_header(letter["Subject"]))) == "nexus：有一项升级上报没有得到答复"
    text = letter.get_payload(decode=True).decode()
    assert text.startswith("等你处理的事项：")
    assert "Nobody answers." in text  # what somebody wrote stays as it is
    notice = OutgoingNotice.objects.get()
    assert notice.payload["data"]["subject"] == "nexus: an escalation has no answer"
    assert Event.objects.filter(reason="nexus: an escalation has no answer").exists()


@contextmanager
def saying(words, settings):
    """A mail server that says this again and again; the event is set when its client has left."""
    left = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk():
            client, _ = server.accept()
            with client, suppress(OSError):
                while not left.wait(0.05):
                    client.sendall(words)
            left.set()

        threading.Thread(target=talk, daemon=True).start()
        settings.EMAIL_BACKEND = "mailroom.outgoing.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.getsockname()
        yield left
        left.set()


@pytest.mark.parametrize("words", [b"2", b"220-wait\r\n" * 50], ids=["drop by drop", "for ever"])
def test_ends_with_a_server_that_goes_on_talking(notice, settings, monkeypatch, words):
    monkeypatch.setattr(smtp, "LONGEST", 1.0)
    with saying(words, settings) as left:
        sending = threading.Thread(target=outbox._failure, args=(notice, None), daemon=True)
        sending.start()
        sending.join(PATIENCE / 3)
        assert not sending.is_alive()
        assert left.wait(PATIENCE)


def test_ends_where_connecting_took_all_its_time(notice, settings, monkeypatch):
    """The time was over when no connection was there yet; the server is no faster for that."""
    connect = socket.create_connection

    def connect_late(*args, **named):
        time.sleep(1.5)
        return connect(*args, **named)

    monkeypatch.setattr(smtp, "LONGEST", 0.5)
    monkeypatch.setattr(socket, "create_connection", connect_late)
    with saying(b"2", settings) as left:
        sending = threading.Thread(target=outbox._failure, args=(notice, None), daemon=True)
        sending.start()
        sending.join(PATIENCE / 3)
        assert not sending.is_alive()
        assert left.wait(PATIENCE)


@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "tls"])
def test_waits_for_many_dead_addresses_no_longer_than_for_one(
    notice, settings, monkeypatch, by_tls
):
    waited, find = [], socket.getaddrinfo

    def find_many(host, port, *args, **named):
        many = [f"192.0.2.{n}" for n in range(1, 41)] if host == "mail.example" else [host]
        return [entry for each in many for entry in find(each, port, *args, **named)]

    def never_answer(self, _address):
        waited.append(self.gettimeout())
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "getaddrinfo", find_many)
    monkeypatch.setattr(socket.socket, "connect", never_answer)
    monkeypatch.setattr(smtp, "monotonic", lambda: sum(waited), raising=False)
    settings.EMAIL_BACKEND = "mailroom.outgoing.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "mail.example", 25
    settings.EMAIL_USE_SSL, settings.EMAIL_TIMEOUT = by_tls, 10
    assert "timed out" in str(outbox._failure(notice, None))
    assert len(waited) == 40
    assert sum(waited) <= smtp.LONGEST + 1


def test_arrives_where_the_first_address_is_dead(notice, postbox, monkeypatch, settings):
    find = socket.getaddrinfo

    def find_two(host, port, *args, **named):
        both = ["127.0.0.2", "127.0.0.1"] if host == "mail.example" else [host]
        return [entry for each in both for entry in find(each, port, *args, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", find_two)
    settings.EMAIL_HOST = "mail.example"
    outbox.send_due(now=NOW)
    assert len(postbox.letters) == 1


def test_of_slow_servers_ends_before_another_sender_takes_it():
    assert outbox.CLAIMED_FOR.total_seconds() > smtp.LONGEST
