"""A real browser, and people who sign in with it as people do."""

import os
from pathlib import Path

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from playwright.sync_api import Page

from core.deeds import PeopleGroup
from nexus_site.console.rights import grant
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


def make_people() -> None:
    """One person for each group, with the groups' rights as `migrate` leaves them."""
    for config in apps.get_app_configs():
        grant(config)
    for desk, name in NAMES.items():
        user = get_user_model().objects.create_user(name, password=PASSWORD, is_staff=True)
        join(user)
        user.groups.set([Group.objects.get(name=desk)])


def sign_in(page: Page, address: str, desk: PeopleGroup) -> None:
    """Sign in by the form."""
    page.goto(f"{address}/admin/login/")
    page.fill("input[name=username]", NAMES[desk])
    page.fill("input[name=password]", PASSWORD)
    page.click("#login-form button[type=submit]")
    page.wait_for_url(f"{address}/admin/")
