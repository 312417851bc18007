"""What a person does first: change a password that others know, enrol a second factor."""

import re
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from threading import Thread

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.test import Client
from django.utils import timezone
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.people import board_members, operator
from core.permissions import PeopleGroup
from governance.interventions import confirmation_codes
from ledger.models import Event
from nexus_site.console import login
from nexus_site.console.management.commands import changepassword, createsuperuser
from nexus_site.run import first_run
from orgchart.people.authenticators import remove_authenticators
from orgchart.people.passwords import (
    ask_for_code,
    code_from,
    give_password,
    is_given,
    known_to,
    take_password,
)
from tests.concurrency import at_once, connect_apart, is_waiting_for_a_lock
from tests.patience import wait_until
from tests.people import join

PASSWORD, OWN = "correct horse battery staple", "another sentence of my own 9"
CODES, CHANGE, HOME = "/admin/confirmation-codes/", "/admin/password_change/", "/admin/"
QR = b"data:image/svg+xml"
BACKEND = "django.contrib.auth.backends.ModelBackend"

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    user = User.objects.create_user("alice", password=PASSWORD, is_staff=True)
    user.groups.add(Group.objects.get_or_create(name=PeopleGroup.BOARD)[0])
    return join(user)


def sign_in(client, password=PASSWORD, **fields):
    form = {"username": "alice", "password": password, "next": HOME} | fields
    return client.post("/admin/login/", form)


def change(client, old=PASSWORD, new=OWN):
    sent = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post(CHANGE, sent)


def code_of(device):
    return f"{totp(device.bin_key, step=device.step):06d}"


def begin(client):
    return client.post(CODES, {"password": PASSWORD})


class TestAGivenPassword:
    def test_opens_no_page_before_it_is_changed(self, client, alice):
        give_password(alice.pk)
        sign_in(client)
        for page in (HOME, "/admin/auth/user/", "/admin/explain/", CODES):
            answer = client.get(page)
            assert (answer.status_code, answer.url) == (302, CHANGE), page
        assert client.post("/admin/auth/user/add/", {"username": "x"}).url == CHANGE
        assert client.get(CHANGE).status_code == 200

    def test_is_not_changed_to_itself(self, client, alice):
        give_password(alice.pk)
        sign_in(client)
        assert change(client, new=PASSWORD).status_code == 200
        assert client.get(HOME).status_code == 302

    def test_is_given_no_longer_once_it_is_changed(self, client, alice):
        give_password(alice.pk)
        sign_in(client)
        assert change(client).status_code == 302
        assert client.get(HOME).status_code == 200
        assert not is_given(alice.pk)
        again = Client()
        sign_in(again, OWN)
        assert again.get(HOME).status_code == 200

    def test_is_what_the_board_sets_for_somebody_else(self):
        bob = join(User.objects.create_user("bob", is_staff=True))
        root = User.objects.create_superuser("root", password=PASSWORD)
        board = Client()
        board.force_login(root, backend=BACKEND)
        sent = {"password1": OWN, "password2": OWN, "usable_password": "true"}
        board.post(f"/admin/auth/user/{bob.pk}/password/", sent)
        assert is_given(bob.pk)

    def test_is_never_ones_own(self, client, alice):
        """Without the present password: who finds an open session does not get the password."""
        sign_in(client)
        page = f"/admin/auth/user/{alice.pk}/password/"
        sent = {"password1": OWN, "password2": OWN, "usable_password": "true"}
        for answer in (client.get(page), client.post(page, sent)):
            assert (answer.status_code, answer.url) == (302, CHANGE)
        alice.refresh_from_db()
        assert alice.check_password(PASSWORD)

    def test_is_what_the_first_people_have_in_production(self, settings):
        for group in PeopleGroup:
            Group.objects.get_or_create(name=group)
        settings.PRODUCTION = True
        first_run.create_first_people(show=lambda _: None, now=timezone.now())
        assert all(is_given(user.pk) for user in User.objects.all())


@pytest.mark.django_db(transaction=True)
class TestAChangeOfAPassword:
    """It lasts as long as two passwords are checked: what happens meanwhile is not undone."""

    def during(self, monkeypatch, act):
        """Change it, and let another connection act between its check and what is saved."""

        def run():
            try:
                connect_apart()
                act()
            finally:
                connections.close_all()

        def save(*args, **kwargs):
            other.start()
            wait_until(lambda: is_waiting_for_a_lock() or not other.is_alive())
            return saved(*args, **kwargs)

        other, saved = Thread(target=run), login.OwnPasswordForm.save
        monkeypatch.setattr(login.OwnPasswordForm, "save", save)
        client = Client()
        sign_in(client)
        change(client)
        other.join()
        return client

    def test_ends_no_code_that_is_asked_meanwhile(self, alice, monkeypatch):
        @transaction.atomic
        def confirm():
            ask_for_code(user=User.objects.get(pk=alice.pk), code_from="other")

        self.during(monkeypatch, confirm)
        assert code_from(alice.pk) == "other"

    def test_activates_no_user_again(self, alice, monkeypatch):
        client = self.during(
            monkeypatch, lambda: User.objects.filter(pk=alice.pk).update(is_active=False)
        )
        assert not User.objects.get(pk=alice.pk).is_active
        assert client.get(HOME).url.startswith("/admin/login/")

    def test_replaces_no_password_that_was_set_meanwhile(self, alice, monkeypatch):
        newest = make_password("what the operator set")
        self.during(monkeypatch, lambda: User.objects.filter(pk=alice.pk).update(password=newest))
        assert User.objects.get(pk=alice.pk).password == newest


class TestARequiredSecondFactor:
    def test_is_enrolled_before_any_other_page(self, client, alice, settings):
        settings.REQUIRE_SECOND_FACTOR = "board"
        sign_in(client)
        for page in (HOME, "/admin/auth/user/"):
            answer = client.get(page)
            assert (answer.status_code, answer.url) == (302, CODES), page
        assert client.get(CODES).status_code == 200
        begin(client)
        page = client.get(CODES).content.decode()
        assert "data:image/svg+xml" in page
        assert client.get(HOME).url == CODES
        device = TOTPDevice.objects.get(user=alice)
        assert re.search("secret|key", page)
        assert client.post(CODES, {"code": "000000"}).status_code == 200
        TOTPDevice.objects.update(throttling_failure_count=0)
        assert client.post(CODES, {"code": code_of(device)}).status_code == 302
        assert client.get(HOME).status_code == 200
        assert Event.objects.filter(action="code.enrolled").exists()

    def test_is_enrolled_by_a_form_that_is_sent_twice(self, client, alice, monkeypatch):
        """A browser shows the second answer only: both found no authenticator when they began."""
        sign_in(client)
        begin(client)
        sent = {"code": code_of(TOTPDevice.objects.get(user=alice))}
        assert client.post(CODES, sent).status_code == 302
        answers = iter([False, True])
        monkeypatch.setattr(confirmation_codes, "has_authenticator", lambda _name: next(answers))
        assert client.post(CODES, sent).status_code == 302

    def test_says_that_another_page_replaced_its_key(self, client, alice):
        """The code is right for the key that this page showed."""
        sign_in(client)
        begin(client)
        code = code_of(TOTPDevice.objects.get(user=alice))
        other = Client()
        sign_in(other)
        begin(other)
        html = client.post(CODES, {"code": code}, follow=True).content.decode()
        assert "was replaced meanwhile" in html
        assert QR not in client.get(CODES).content

    def test_is_asked_for_once_however_many_pages_were(self, client, alice, settings):
        """A browser asks for pages, streams and pictures; one message is enough."""
        settings.REQUIRE_SECOND_FACTOR = "everybody"
        client.force_login(alice)
        for address in ("/admin/", "/admin/feed/", "/admin/company/"):
            assert client.get(address).status_code == 302
        html = client.get("/admin/confirmation-codes/").content.decode()
        assert html.count("Enrol a second factor first") == 1

    def test_is_not_one_that_another_session_began(self, client, alice):
        """Who signed in as this user before would know its key."""
        before = Client()
        for each in (before, client):
            sign_in(each)
        begin(before)
        device = TOTPDevice.objects.get()
        assert QR in before.get(CODES).content
        assert QR not in client.get(CODES).content
        client.post(CODES, {"code": code_of(device)})
        assert not TOTPDevice.objects.filter(confirmed=True).exists()
        begin(client)
        assert TOTPDevice.objects.get() != device
        assert QR not in before.get(CODES).content

    def test_is_begun_by_nobody_who_found_an_open_session(self, client, alice):
        """Its owner would be asked for the codes of who did."""
        sign_in(client)
        for sent in ({}, {"password": ""}, {"password": OWN}, {"password": f" {PASSWORD}"}):
            assert QR not in client.post(CODES, sent, follow=True).content, sent
        assert not TOTPDevice.objects.exists()
        failed = Event.objects.filter(action="person.sign_in_failed", subject="human:alice")
        assert failed.count() == 2
        for _ in range(10):
            client.post(CODES, {"password": OWN})
        assert QR not in begin(client).content, "who guesses is locked out"
        assert not TOTPDevice.objects.exists()

    def test_ends_a_session_that_was_opened_without_it(self, client, alice, settings):
        sign_in(client)
        settings.REQUIRE_SECOND_FACTOR = "board"
        TOTPDevice.objects.create(user=alice, name="phone", confirmed=True)
        assert client.get(HOME).url == "/admin/login/"
        assert "login" in client.get(HOME).url

    def test_is_asked_of_the_groups_that_the_setting_names(self, client, alice, settings):
        alice.groups.set([Group.objects.get_or_create(name=PeopleGroup.OBSERVER)[0]])
        sign_in(client)
        for value, expected in (("none", 200), ("board", 200), ("everybody", 302)):
            settings.REQUIRE_SECOND_FACTOR = value
            assert client.get(HOME).status_code == expected, value

    def test_comes_after_a_given_password(self, client, alice, settings):
        settings.REQUIRE_SECOND_FACTOR = "board"
        give_password(alice.pk)
        sign_in(client)
        assert client.get(CODES).url == CHANGE
        change(client)
        assert client.get(HOME).url == CODES


class TestACode:
    def test_is_asked_of_a_superuser_in_open_sessions_too(self, client, settings):
        settings.REQUIRE_SECOND_FACTOR = "board"
        root = User.objects.create_superuser("root", password=PASSWORD)
        client.force_login(root, backend=BACKEND)
        with transaction.atomic():
            code = ask_for_code(user=root, code_from="other")
        for page in (HOME, CODES):
            assert client.get(page).url == CHANGE, page
        sent = {"old_password": PASSWORD, "new_password1": OWN, "new_password2": OWN, "code": code}
        client.post(CHANGE, sent)
        assert client.get(HOME).url == CODES


class TestTheLibrarysPages:
    def test_are_gone(self, client):
        client.force_login(
            User.objects.create_superuser("root"),
            backend=BACKEND,
        )
        for page in ("", "add/", "1/config/", "1/qrcode/"):
            assert client.get(f"/admin/otp_totp/totpdevice/{page}").status_code == 404


class TestTheCommand:
    def test_says_and_sets_who_is_where(self, alice, capsys):
        call_command("people", "member", "alice")
        assert "organisations none" in capsys.readouterr().out
        call_command("people", "member", "alice", "--every")
        call_command("people", "list")
        assert "alice: groups Board; organisations every one" in capsys.readouterr().out

    def test_removes_a_lost_second_factor(self, alice, capsys):
        TOTPDevice.objects.create(user=alice, name="phone", confirmed=True)
        call_command("people", "forget-device", "alice")
        assert not TOTPDevice.objects.exists()
        assert Event.objects.filter(action="code.removed", subject="user:alice").exists()

    @pytest.mark.parametrize("asked", ["none", "board"])
    def test_ends_the_sessions_of_who_lost_a_second_factor(self, client, alice, settings, asked):
        """In an open session the finder of the device would enrol another authenticator."""
        TOTPDevice.objects.create(user=alice, name="phone", confirmed=True)
        settings.REQUIRE_SECOND_FACTOR = asked
        other = Client()
        other.force_login(User.objects.create_superuser("root"), backend=BACKEND)
        client.force_login(alice, backend=BACKEND)
        call_command("people", "forget-device", "alice")
        assert client.get(HOME).url.startswith("/admin/login/")
        assert client.get(CODES).url.startswith("/admin/login/")
        assert "_auth_user_id" in other.session

    def test_deletes_all_sessions_of_a_user_at_once(self, client, alice, django_assert_num_queries):
        """Changes of all users wait meanwhile; a program may sign in every few minutes."""
        client.force_login(alice, backend=BACKEND)
        opened = Session.objects.get()
        for number in range(10):
            opened.session_key = f"{number:032}"
            opened.save(force_insert=True)
        with transaction.atomic(), django_assert_num_queries(3):
            remove_authenticators(alice)
        assert not Session.objects.exists()


class TestThePasswordOfTheOperator:
    """`manage.py changepassword`."""

    def changed(self, monkeypatch, *typed, meanwhile=lambda: None):
        answers = iter(typed)

        def ask(_prompt):
            meanwhile()
            return next(answers)

        monkeypatch.setattr(changepassword, "getpass", ask)
        call_command("changepassword", "alice")

    def test_undoes_nothing_that_happens_meanwhile(self, alice, monkeypatch):
        rows = User.objects.filter(pk=alice.pk)
        self.changed(monkeypatch, OWN, OWN, meanwhile=lambda: rows.update(is_active=False))
        alice.refresh_from_db()
        assert not alice.is_active
        assert alice.check_password(OWN)
        event = Event.objects.get(action="person.password_changed")
        assert event.actor == operator().actor

    def test_is_changed_first_and_known_to_no_member_of_the_board(self, alice, monkeypatch):
        """Spec: people 37, people 49."""
        give_password(alice.pk, by="bob")
        take_password(alice.pk)
        self.changed(monkeypatch, OWN, OWN)
        assert is_given(alice.pk)
        assert known_to(alice.pk) == []

    def test_is_typed_twice_and_valid(self, alice, monkeypatch, capsys):
        with pytest.raises(CommandError, match="nothing changed"):
            self.changed(monkeypatch, OWN, OWN + "x", "short", "short", "", "")
        assert "differ" in capsys.readouterr().err
        alice.refresh_from_db()
        assert alice.check_password(PASSWORD)

    def test_is_of_a_user_who_is_there(self):
        with pytest.raises(CommandError, match="there is no user nobody"):
            call_command("changepassword", "nobody")


class TestASuperuser:
    """`manage.py createsuperuser`. Spec: people 31, people 56."""

    def make(self, monkeypatch, name="root"):
        monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", OWN)
        call_command("createsuperuser", interactive=False, username=name, email="r@x.example")

    def test_is_in_the_ledger_with_the_operator(self, alice, monkeypatch):
        self.make(monkeypatch)
        event = Event.objects.get(action="member.added", subject="human:root")
        assert event.actor == operator().actor
        assert event.reason == "every organisation, as a superuser"

    def test_is_alone_on_the_board_of_those_who_are_taken_out(self, alice, monkeypatch):
        """As docs/operations.md says, where they are gone for good."""
        self.make(monkeypatch)
        assert board_members(0) == {"alice", "root"}
        call_command("people", "member", "alice")
        assert board_members(0) == {"root"}

    def test_is_not_made_without_its_event(self, alice, monkeypatch):
        monkeypatch.setattr(createsuperuser, "record", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            self.make(monkeypatch)
        assert not User.objects.filter(username="root").exists()

    def test_that_is_not_made_is_no_success(self, alice, monkeypatch):
        monkeypatch.setattr("sys.stdin", StringIO())
        with pytest.raises(CommandError, match="No superuser was made"):
            call_command("createsuperuser")

    def test_that_is_not_made_leaves_no_event(self, alice, monkeypatch):
        with pytest.raises(CommandError, match="already taken"):
            self.make(monkeypatch, "alice")
        assert not Event.objects.filter(action="member.added").exists()

    @pytest.mark.django_db(transaction=True)
    def test_whose_name_is_taken_meanwhile_is_refused(self, monkeypatch):
        with ThreadPoolExecutor(1) as other:
            with transaction.atomic():
                User.objects.create_user("root")
                answer = other.submit(at_once, [lambda: self.make(monkeypatch)])
                wait_until(is_waiting_for_a_lock)
            (refused,) = answer.result()
        assert isinstance(refused, CommandError)
        assert "already taken" in str(refused)
        assert not Event.objects.filter(action="member.added").exists()
