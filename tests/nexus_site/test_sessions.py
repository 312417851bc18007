"""Cookies that name no session of ours: strangers send what they like in them."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.urls import reverse

from core.database import database_now
from nexus_site.serving import body_limits
from toolbox import scheduler

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)

FORGED = (
    r'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\000"',  # in quotes, a cookie spells any character
    r'"\000\001\377aaaaaaaa"',
    "\xff" * 32,
    "a" * 8000,
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345",
    "../../../../../../../../etc/pass",
    "",
)


@pytest.mark.parametrize("value", FORGED)
class TestAForgedCookie:
    @pytest.fixture
    def cookie(self, value):
        return f"{settings.SESSION_COOKIE_NAME}={value}"

    @pytest.mark.parametrize("page", ["admin:login", "api_docs"])
    def test_is_that_of_a_stranger(self, client, cookie, page):
        assert client.get(reverse(page), HTTP_COOKIE=cookie).status_code == 200

    def test_opens_no_page_of_people(self, client, cookie):
        answer = client.get(reverse("admin:index"), HTTP_COOKIE=cookie)
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("admin:login"))

    def test_sends_no_more_than_a_stranger(self, cookie):
        scope = {"headers": [(b"cookie", cookie.encode("latin-1", "replace"))]}
        assert not body_limits.is_known(scope)


class TestASession:
    def test_of_a_person_is_known(self, client):
        client.force_login(get_user_model().objects.create(username="anna"))
        key = client.cookies[settings.SESSION_COOKIE_NAME].value
        sent = f"{settings.SESSION_COOKIE_NAME}={key}".encode()
        assert body_limits.is_known({"headers": [(b"cookie", sent)]})


class TestTheRowsOfSessions:
    def test_are_deleted_a_day_after_their_end(self):
        """Else each sign-in leaves one, and who loses a device waits for all to be read."""
        now = database_now()
        for key, over in {"open": -HOUR, "over": HOUR, "long over": 25 * HOUR}.items():
            Session.objects.create(session_key=key, session_data="", expire_date=now - over)
        assert scheduler.run_job("sessions of people", now=now) == 1
        assert set(Session.objects.values_list("session_key", flat=True)) == {"open", "over"}
