"""Browsers in which a person signed in before (Spec: people 54)."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest, HttpResponse, parse_cookie
from django.utils.crypto import salted_hmac

from core.storable import UNSTORABLE

SALT = "nexus_browser"
COOKIE = f"{settings.COOKIE_PREFIX}{SALT}"
DAYS = 90
AGE = DAYS * 24 * 3600  # seconds since the last sign-in
MARK = "#"  # no user's name has it
LONGEST = 150  # characters: no user's name has more, and a failure's column has room for few


def remember(request: HttpRequest, answer: HttpResponse) -> None:
    """Let this browser be known as one of the person who has just signed in."""
    name = request.user.get_username()
    browser = _browser_of(request, name) or secrets.token_urlsafe(12)
    answer.set_cookie(
        COOKIE,
        signing.dumps([name, browser], salt=SALT),
        max_age=AGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def counted_name(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """The name that failures are counted by (django-axes): in a known browser one of its own.

    What no user is called is kept as a digest: people type their password there by mistake, and
    the list of failures shows it (Spec: people 53).
    """
    sent = request.POST if credentials is None else credentials
    name = str(sent.get("username") or "")[:LONGEST]
    browser = _browser_of(request, name)
    if browser:
        return f"{name}{MARK}{browser}"
    if not UNSTORABLE.search(name) and User.objects.filter(username=name).exists():
        return name
    return f"{MARK}{salted_hmac(SALT, name, algorithm='sha256').hexdigest()[:32]}"


def person_of(request: HttpRequest, counted: str) -> str:
    """The name that was entered, of the one that failures are counted by."""
    name, mark, browser = counted.rpartition(MARK)
    return name if mark and browser == _browser_of(request, name) else counted


def owner_of(cookies: str) -> str:
    """Who signed in in the browser that sends these cookies; empty where no person did."""
    owner, _ = _read(parse_cookie(cookies).get(COOKIE, "")) or ("", "")
    return owner


def _browser_of(request: HttpRequest, name: str) -> str:
    """The browser's number, if this person signed in there; else empty."""
    owner, browser = _read(request.COOKIES.get(COOKIE, "")) or ("", "")
    return browser if owner == name else ""


def _read(cookie: str) -> tuple[str, str] | None:
    """The person and the browser's number, of a cookie that we signed."""
    try:
        owner, browser = signing.loads(cookie, salt=SALT, max_age=AGE)
    except (signing.BadSignature, ValueError):
        return None
    return str(owner), str(browser)
