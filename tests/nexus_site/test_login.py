"""The admin's sign-in, with and without a second factor."""

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

PASSWORD = "correct horse battery staple"

pytestmark = pytest.mark.django_db


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

    def test_refuses_a_wrong_code(self, client, device):
        wrong = f"{(int(code_of(device)) + 1) % 1_000_000:06d}"
        assert sign_in(client, otp_token=wrong).status_code == 200
        assert client.get("/admin/").status_code == 302

    def test_takes_password_and_code_together(self, client, device):
        assert sign_in(client, otp_token=code_of(device)).status_code == 302
        assert client.get("/admin/").status_code == 200

    def test_takes_a_code_once(self, client, device):
        code = code_of(device)
        sign_in(client, otp_token=code)
        client.logout()
        assert sign_in(client, otp_token=code).status_code == 200

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
