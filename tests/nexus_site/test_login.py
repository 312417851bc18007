"""The admin's sign-in, with and without a second factor."""

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django_otp.oath import totp
from django_otp.plugins import otp_totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.database import database_now
from ledger.models import Event
from nexus_site.console import known_browsers, signing_in

PASSWORD = "correct horse battery staple"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def another_minute(monkeypatch):
    """One in which no failure was recorded yet."""
    monkeypatch.setattr(signing_in, "FAILURES", signing_in.FailureLog())


@pytest.fixture
def person():
    return User.objects.create_user("alice", password=PASSWORD, is_staff=True, is_superuser=True)


@pytest.fixture
def device(person):
    return TOTPDevice.objects.create(user=person, name="phone", confirmed=True)


def sign_in(client, **fields):
    form = {"username": "alice", "password": PASSWORD, "next": "/admin/"} | fields
    return client.post("/admin/login/", form)


def code_of(device):
    return f"{totp(device.bin_key, step=device.step):06d}"


class TestSignIn:
    @pytest.mark.parametrize("address", ["//evil.example", "https:evil.example", "/\\evil.example"])
    def test_leads_to_no_other_site(self, client, person, address):
        answer = sign_in(client, next=address)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")

    def test_takes_a_password_from_who_has_no_device(self, client, person):
        assert sign_in(client).status_code == 302
        assert client.get("/admin/").status_code == 200

    def test_shows_the_field_for_the_code(self, client):
        assert 'name="otp_token"' in client.get("/admin/login/").content.decode()

    def test_refuses_a_password_alone_from_who_has_a_device(self, client, device):
        response = sign_in(client)
        assert response.status_code == 200
        assert "one-time code is missing or wrong" in response.content.decode()
        assert client.get("/admin/").status_code == 302

    @pytest.mark.parametrize("hours", [-5, 5])
    def test_is_recorded_with_the_time_of_the_database(self, client, person, monkeypatch, hours):
        """Else a machine hours behind another makes events that look too old to be unsealed."""
        machine = timezone.now
        monkeypatch.setattr(timezone, "now", lambda: machine() + timedelta(hours=hours))
        sign_in(client, password="wrong")
        sign_in(client)
        apart = [abs(at - database_now()) for at in Event.objects.values_list("at", flat=True)]
        assert len(apart) >= 2
        assert max(apart) < timedelta(minutes=5)

    def test_reads_out_why_it_refused(self, client, person):
        html = sign_in(client, password="wrong").content.decode()
        problem = html.split('<div role="alert" tabindex="-1" autofocus>')[1].split("</form>")[0]
        assert "correct username and password" in problem
        assert "Please correct the error" not in html
        assert "Please correct the error" in sign_in(client, username="").content.decode()

    def test_refuses_a_wrong_code(self, client, device):
        wrong = f"{(int(code_of(device)) + 1) % 1_000_000:06d}"
        assert sign_in(client, otp_token=wrong).status_code == 200
        assert client.get("/admin/").status_code == 302

    def test_counts_wrong_codes_and_shows_them_to_the_board(self, client, device, settings):
        settings.AXES_FAILURE_LIMIT = 3
        answers = [sign_in(client, otp_token="x").status_code for _ in range(4)]
        assert answers == [200, 200, 429, 429]
        failed = Event.objects.filter(action="person.sign_in_failed").order_by("seq")
        said = [event.details.get("second_factor") for event in failed]
        assert said == ["wrong"] * 3 + [None]  # the last was not asked for one
        assert {event.subject for event in failed} == {f"human:{device.user.username}"}
        assert Event.objects.filter(action="person.locked_out").exists()

    def test_is_locked_for_all_addresses_that_one_client_holds(self, client, person, settings):
        settings.AXES_FAILURE_LIMIT = 3
        answers = [
            sign_in(Client(REMOTE_ADDR=f"2001:db8:0:7::{n}"), password="wrong").status_code
            for n in range(1, 5)
        ]
        assert answers == [200, 200, 429, 429]
        assert sign_in(Client(REMOTE_ADDR="2001:db8:0:8::1"), password="wrong").status_code == 200

    def test_takes_password_and_code_together(self, client, device):
        assert sign_in(client, otp_token=code_of(device)).status_code == 302
        assert client.get("/admin/").status_code == 200

    def test_takes_a_code_once(self, client, device):
        code = code_of(device)
        sign_in(client, otp_token=code)
        client.logout()
        assert sign_in(client, otp_token=code).status_code == 200

    def test_takes_the_code_of_now_however_late_earlier_ones_came(
        self, client, device, monkeypatch
    ):
        now = SimpleNamespace(time=lambda: now.seconds)
        monkeypatch.setattr(otp_totp.models, "time", now)
        for seconds, age in ((3010, 1), (3070, 2), (3130, 0), (3160, 0)):
            TOTPDevice.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)
            now.seconds = seconds
            code = totp(device.bin_key, t0=int(time.time()) - seconds, drift=-age)
            answer = sign_in(client, otp_token=f"{code:06d}")
            client.logout()
        assert answer.status_code == 302

    def test_waits_after_a_wrong_code_for_seconds_whatever_the_clock_said(self, client, device):
        """The clock was set back since, or the code was wrong at a machine that runs ahead."""
        ahead = timezone.now() + timedelta(days=400)
        TOTPDevice.objects.update(throttling_failure_timestamp=ahead, throttling_failure_count=1)
        assert sign_in(client, otp_token=code_of(device)).status_code == 200
        waits = TOTPDevice.objects.get().throttling_failure_timestamp
        assert waits <= timezone.now()
        TOTPDevice.objects.update(throttling_failure_timestamp=waits - timedelta(seconds=2))
        assert sign_in(client, otp_token=code_of(device)).status_code == 302

    def test_ignores_a_device_that_was_never_confirmed(self, client, device):
        TOTPDevice.objects.update(confirmed=False)
        assert sign_in(client).status_code == 302

    def test_locks_out_who_keeps_guessing(self, client, person, settings):
        settings.AXES_FAILURE_LIMIT = 3
        for _ in range(3):
            last = sign_in(client, password="guess")
        assert last.status_code == 429
        assert sign_in(client).status_code == 429
        assert AccessAttempt.objects.get().failures_since_start >= 3

    def test_locks_out_who_guesses_at_machines_whose_times_differ(
        self, client, person, settings, monkeypatch
    ):
        settings.AXES_FAILURE_LIMIT = 3
        answers = []
        for hours in (0, 1, 0, 1):
            ahead = timezone.now() + timedelta(hours=hours)
            monkeypatch.setattr("axes.handlers.proxy.now", lambda ahead=ahead: ahead)
            answers.append(sign_in(client, password="guess").status_code)
        assert answers == [200, 200, 429, 429]

    @pytest.mark.parametrize("hours", [-1, 1])
    def test_locks_out_who_guesses_at_a_machine_with_another_time_than_the_database(
        self, client, person, settings, monkeypatch, hours
    ):
        """Spec: clocks 3. Else each failure is forgotten before the next one counts."""
        settings.AXES_FAILURE_LIMIT = 3
        here = timezone.now
        monkeypatch.setattr(timezone, "now", lambda: here() + timedelta(hours=hours))
        assert [sign_in(client, password="guess").status_code for _ in range(3)][-1] == 429
        assert sign_in(client).status_code == 429


class TestAKnownBrowser:
    """Spec: people 54."""

    @pytest.fixture(autouse=True)
    def few_failures(self, settings):
        settings.AXES_FAILURE_LIMIT = 3

    @pytest.fixture
    def known(self, person):
        """Alice's browser; she signed out."""
        browser = Client()
        assert sign_in(browser).status_code == 302
        browser.cookies.pop("nexus_session")
        return browser

    def guess(self, client, times=4, **fields):
        return [sign_in(client, password="guess", **fields).status_code for _ in range(times)][-1]

    def test_is_not_locked_by_strangers_of_the_same_address(self, known, client):
        assert self.guess(client) == 429
        assert sign_in(client).status_code == 429
        assert sign_in(known).status_code == 302

    def test_locks_itself_and_no_stranger(self, known, client):
        assert self.guess(known) == 429
        assert sign_in(known).status_code == 429
        assert {each.subject for each in events("person.locked_out")} == {"human:alice"}
        assert sign_in(client).status_code == 302

    def test_stays_locked_with_each_new_sign_in(self, known, client):
        """The number of the browser stays: a sign-in does not forgive what was guessed there."""
        self.guess(known, 2)
        assert sign_in(known).status_code == 302
        assert self.guess(known, 1) == 429

    def test_is_known_to_its_own_person_only(self, known, client):
        User.objects.create_user("bob", password=PASSWORD, is_staff=True)
        self.guess(client, username="bob")
        assert sign_in(known, username="bob").status_code == 429

    @pytest.mark.parametrize("value", ["", "alice", "alice:x", "x" * 5000])
    def test_is_not_what_a_stranger_says(self, client, person, value):
        self.guess(client)
        client.cookies["nexus_browser"] = value
        assert sign_in(client).status_code == 429

    def test_is_no_longer_known_after_three_months(self, known, client, monkeypatch):
        self.guess(client)
        monkeypatch.setattr(known_browsers, "AGE", -1)
        assert sign_in(known).status_code == 429

    def test_is_not_remembered_without_the_code(self, client, device):
        sign_in(client)
        assert "nexus_browser" not in client.cookies

    def test_has_a_cookie_that_no_script_reads(self, known, settings):
        cookie = known.cookies["nexus_browser"]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")

    def test_is_counted_by_a_name_that_no_person_has(self, client, person):
        self.guess(client, username="alice#1")
        assert {each.subject for each in events("person.locked_out")} == {"human:?"}
        assert sign_in(client).status_code == 302


def events(action):
    return list(Event.objects.filter(action=action).order_by("seq"))


class TestTheLedger:
    def test_has_every_sign_in_with_its_address(self, client, person):
        sign_in(client)
        (event,) = events("person.signed_in")
        assert (event.actor, event.decision) == ("human:alice", "allow")
        assert event.details == {"address": "127.0.0.1"}

    def test_has_every_failure_and_lockout(self, client, person, settings):
        settings.AXES_FAILURE_LIMIT = 3
        for _ in range(4):
            sign_in(client, password="guess")
        failed = events("person.sign_in_failed")
        assert len(failed) >= 3
        assert {(e.subject, e.decision, e.code) for e in failed} == {
            ("human:alice", "deny", "UNAUTHENTICATED")
        }
        assert events("person.locked_out")
        assert "guess" not in str([e.details for e in failed])

    def test_has_no_name_that_no_user_has(self, client, person, settings):
        """Spec: people 53: people type their password there by mistake."""
        settings.AXES_FAILURE_LIMIT = 2
        for _ in range(3):
            sign_in(client, username="correct horse battery", password="alice")
        failed = events("person.sign_in_failed") + events("person.locked_out")
        assert {event.subject for event in failed} == {"human:?"}
        assert "horse" not in str([event.details for event in failed])

    def test_is_not_filled_by_strangers(self, client, monkeypatch):
        monkeypatch.setattr(signing_in, "FAILURES", signing_in.FailureLog())
        monkeypatch.setattr(signing_in, "MOST_RECORDED", 3)
        for number in range(7):
            sign_in(client, username=f"stranger{number}")
        assert 1 <= len(events("person.sign_in_failed")) < 7  # three of each minute

    def test_has_every_changed_password(self, person):
        person.set_password("another long password")
        person.save()
        assert [event.subject for event in events("person.password_changed")][-1] == "human:alice"

    @pytest.mark.parametrize("name", ["x" * 140 + "\u202e", "x" * 300, "\ufdfa" * 149])
    def test_has_names_of_any_length_and_kind(self, client, name):
        """The last is of 2,682 characters when it is compared."""
        assert sign_in(client, username=name).status_code == 200
        assert AccessAttempt.objects.get().failures_since_start == 1

    @pytest.mark.parametrize("name", ["my long password", "nxs_" + "k" * 43, "Alice", "alice#x"])
    def test_counts_a_name_that_no_user_has_without_keeping_it(
        self, client, person, settings, name
    ):
        """People type their password there by mistake, and the Board reads the list."""
        settings.AXES_FAILURE_LIMIT = 3
        for _ in range(3):
            sign_in(client, username=name)
        (row,) = AccessAttempt.objects.all()
        assert row.failures_since_start == 3
        assert name not in str(row.__dict__)
        assert sign_in(client, username=name).status_code == 429
        assert sign_in(client).status_code == 302


class TestAFlood:
    def test_of_passwords_waits_and_is_turned_away(self, client, person, monkeypatch):
        monkeypatch.setattr(signing_in, "PATIENCE", 0.05)
        held = [signing_in.CHECKS.acquire() for _ in range(signing_in.AT_ONCE)]
        try:
            assert "Too many people sign in" in sign_in(client).content.decode()
            assert not AccessAttempt.objects.exists()
        finally:
            for _ in held:
                signing_in.CHECKS.release()
        assert sign_in(client).status_code == 302

    def test_of_the_own_old_password_waits_as_well(self, client, person, monkeypatch):
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        monkeypatch.setattr(signing_in, "PATIENCE", 0.05)
        held = [signing_in.CHECKS.acquire() for _ in range(signing_in.AT_ONCE)]
        try:
            assert "Too many people sign in" in change(client, PASSWORD).content.decode()
        finally:
            for _ in held:
                signing_in.CHECKS.release()
        assert change(client, PASSWORD).status_code == 302


OWN = "another sentence of my own 9"


def change(client, old):
    sent = {"old_password": old, "new_password1": OWN, "new_password2": OWN}
    return client.post("/admin/password_change/", sent)


class TestAnAccountThatIsSwitchedOff:
    """Else who knows its password could take it over before it is switched on again."""

    def test_chooses_no_password_in_a_session_that_is_open(self, client, person):
        sign_in(client)
        User.objects.update(is_active=False)
        answer = change(client, PASSWORD)
        assert answer.headers["Location"].startswith("/admin/login/")
        person.refresh_from_db()
        assert person.check_password(PASSWORD)

    def test_signs_in_nowhere(self, client, person):
        User.objects.update(is_active=False)
        assert sign_in(client).status_code == 200
        assert client.get("/admin/password_change/").status_code == 302


class TestGuessesInAnOpenSession:
    """Who found an open session does not get the password out of it."""

    def test_are_recorded_and_locked_out_as_at_sign_in(self, client, person, settings):
        settings.AXES_FAILURE_LIMIT = 3
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        for number in range(3):
            assert change(client, f"guess {number}").status_code in (200, 429)
        assert len(events("person.sign_in_failed")) >= 3
        assert events("person.locked_out")
        assert change(client, PASSWORD).status_code == 429
        assert User.objects.get().check_password(PASSWORD)
