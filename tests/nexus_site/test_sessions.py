"""Cookies that name no session of ours: strangers send what they like in them."""

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.urls import reverse

from nexus_site.serving import body_limits

pytestmark = pytest.mark.django_db

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
