"""A real browser, and people who sign in with it as people do."""

import os
from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_user_model,
)
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Page

from core.permissions import PeopleGroup
from tests.people import join

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PASSWORD = "correct horse battery staple"
NAMES = {
    PeopleGroup.BOARD: "ada.board",
    PeopleGroup.HR: "hedy.hr",
    PeopleGroup.REVIEWER: "rosa.reviewer",
    PeopleGroup.OBSERVER: "olga.observer",
}


def has_browser() -> bool:
    """Whether there is a chromium to drive."""
    return Path(CHROMIUM).exists()


@cache
def _hashed() -> str:
    return make_password(PASSWORD)


def make_people() -> None:
    """One person for each group, with the groups' rights as `migrate` leaves them."""
    for desk, name in NAMES.items():
        user = get_user_model().objects.create(username=name, password=_hashed(), is_staff=True)
        join(user)
        user.groups.set([Group.objects.get(name=desk)])


def sign_in(page: Page, address: str, desk: PeopleGroup) -> None:
    """Sign in by the form."""
    page.goto(f"{address}/admin/login/")
    page.fill("input[name=username]", NAMES[desk])
    page.fill("input[name=password]", PASSWORD)
    page.click("#login-form button[type=submit]")
    page.wait_for_url(f"{address}/admin/")


def enter_signed_in(page: Page, address: str, desk: PeopleGroup) -> None:
    """Open the first page with the session of somebody who has signed in."""
    user = get_user_model().objects.get(username=NAMES[desk])
    session = SessionStore()
    session.update(
        {
            SESSION_KEY: str(user.pk),
            BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
            HASH_SESSION_KEY: user.get_session_auth_hash(),
        }
    )
    session.save()
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": address}
    page.context.add_cookies([cookie])
    page.goto(f"{address}/admin/")


def complaints_of(page: Page) -> list[str]:
    """What the console complains of from now on: scripts refused, files missing, errors."""
    heard: list[str] = []
    page.on("console", lambda m: heard.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: heard.append(str(e)))
    return heard
