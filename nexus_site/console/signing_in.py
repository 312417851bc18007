"""Turns of password checks, and what the ledger keeps of sign-ins and changed passwords.

How many failures lock a name out, and for how long, settings say (`AXES_FAILURE_LIMIT`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.db.models import Field
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.actions import Action
from core.database import database_now
from core.decision import Code
from core.events import Event, EventOutcome, record_event
from nexus_site.console import known_browsers
from nexus_site.console.first_steps import remember_given_password
from nexus_site.serving.proxies import client_address

AT_ONCE = 2  # password checks in one process: each takes 100 MB and a core
PATIENCE = 3.0  # seconds that a sign-in waits for its turn
MOST_RECORDED = 60  # failures of unknown callers that a process records in a minute

UNKNOWN = "?"
"""In the ledger in place of a name that no user has: people type a password there by mistake."""

CHECKS = BoundedSemaphore(AT_ONCE)
"""The turns of password checks; a flood of them waits here and is turned away."""


@contextmanager
def turn(request: HttpRequest) -> Iterator[None]:
    """One of the turns of password checks. Raises ValidationError where none comes.

    What it finds counts for a lockout by the database's time, which is the same for all machines:
    of two whose times differ each would forget what the other counted. Spec: clocks 3.
    """
    AxesProxyHandler.update_request(request)
    request.axes_attempt_time = database_now()  # type: ignore[attr-defined]
    if not CHECKS.acquire(timeout=PATIENCE):
        raise ValidationError(
            _("Too many people sign in at this moment. Try again in a few seconds."), code="busy"
        )
    try:
        yield
    finally:
        CHECKS.release()


def keep_given_time() -> None:
    """Let a first failure have the time that it was given, as later ones have.

    The library's column takes the machine's time for a new row: where that is behind the
    database's, each failure would be forgotten before the next, and none would lock out.
    """
    column: Any = AccessAttempt._meta.get_field("attempt_time")  # noqa: SLF001  Django's public name
    column.pre_save = partial(Field.pre_save, column)


def proves_password(request: HttpRequest, password: str) -> bool:
    """Whether this is the present password of who is signed in.

    Who guesses it in an open session is locked out as at sign-in. Raises ValidationError where no
    turn comes. Spec: people 53.
    """
    user = request.user
    with turn(request):
        found = authenticate(request, username=user.get_username(), password=password)
    return found == user


class FailureLog:
    """Counts failures by the minute, so that strangers cannot fill the ledger."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._minute = 0
        self._recorded = 0
        self._left_out = 0

    def admit(self) -> int | None:
        """How many were left out before this one, which is recorded; None where it is not."""
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute, self._recorded = minute, 0
            if self._recorded >= MOST_RECORDED:
                self._left_out += 1
                return None
            self._recorded += 1
            left_out, self._left_out = self._left_out, 0
            return left_out


FAILURES = FailureLog()


def on_signed_in(request: HttpRequest, user: Any, **_: Any) -> None:
    """Record a sign-in, and whether the password is one that others know."""
    remember_given_password(request, user)
    if client_address(request):  # else no client sent it: a test or a command
        _record(Action.PERSON_SIGNED_IN, user.get_username(), request)


def on_failed(
    credentials: dict[str, Any],
    request: HttpRequest | None = None,
    *,
    second_factor: bool = False,
    **_: Any,
) -> None:
    """Record a sign-in that failed; with `second_factor`, of a person whose password is known."""
    left_out = FAILURES.admit()
    if request is not None and left_out is not None:
        name = str(credentials.get("username") or "")
        known = {"second_factor": "wrong"} if second_factor else {}
        _record(Action.PERSON_SIGN_IN_FAILED, name, request, left_out=left_out, **known)


def report_wrong_code(request: HttpRequest | None, user: Any) -> None:
    """Let a wrong one-time code count as a failure: who sends it knows the password."""
    user_login_failed.send(
        __name__,
        credentials={"username": user.get_username()},
        request=request,
        second_factor=True,
    )


def on_locked_out(request: HttpRequest, username: str | None = None, **_: Any) -> None:
    """Record that somebody tried too often."""
    left_out = FAILURES.admit()
    if left_out is not None:
        name = known_browsers.person_of(request, username or "")
        _record(Action.PERSON_LOCKED_OUT, name, request, left_out=left_out)


class RecordedPassword:
    """A password validator that refuses nothing: Django tells it of every changed password."""

    def validate(self, password: str, user: Any = None) -> None:
        """Accept it."""

    def get_help_text(self) -> str:
        """Say nothing."""
        return ""

    def password_changed(self, password: str, user: Any = None) -> None:
        """Record that a person's password was changed, by whatever way."""
        if user is not None and user.pk is not None:
            by = getattr(user, "password_chosen_by", "")
            _record(Action.PERSON_PASSWORD_CHANGED, user.get_username(), None, by=by)


def _record(
    action: Action, name: str, request: HttpRequest | None, *, by: str = "", **details: Any
) -> None:
    failed = action in {Action.PERSON_SIGN_IN_FAILED, Action.PERSON_LOCKED_OUT}
    if failed and not User.objects.filter(username=name).exists():
        name = UNKNOWN
    if request is not None:
        details["address"] = client_address(request)
    event = Event(
        action=action,
        actor=by or ("system:sign-in" if failed or request is None else f"human:{name[:150]}"),
        at=database_now(),
        subject=f"human:{name[:150]}",
        request_id=getattr(request, "request_id", ""),
        details=details,
        decision=EventOutcome.DENY if failed else EventOutcome.ALLOW,
        code=Code.UNAUTHENTICATED if failed else "",
    )
    record_event(event)
