"""A user's authenticators, and the sessions that were opened with them (Spec: people 50)."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.database import needs_transaction, rows_of_array


def bound_wait(user: User, *, now: datetime) -> None:
    """Let a wrong code that is said to come from the future be one of now.

    Its machine's clock was set back since, or runs ahead: until then every code would be refused.
    """
    waits = TOTPDevice.objects.filter(user=user, throttling_failure_timestamp__gt=now)
    waits.update(throttling_failure_timestamp=now)


def newest_device(user: User) -> int | None:
    """The id of a user's newest authenticator; None without one."""
    ids = TOTPDevice.objects.filter(user=user).order_by("-id").values_list("id", flat=True)
    newest: int | None = ids.first()
    return newest


@needs_transaction
def remove_devices(user: User) -> int:
    """Remove a user's authenticators, also one that waits for its first code; how many."""
    removed: int = TOTPDevice.objects.filter(user=user).delete()[0]
    return removed


@needs_transaction
def remove_authenticators(user: User) -> int:
    """Remove a user's authenticators and end their open sessions; how many authenticators.

    Who lost one may have lost the device with the open session, too, and there could enrol another.
    """
    removed = remove_devices(user)
    mine = str(user.pk)
    theirs = [
        session.session_key
        for session in Session.objects.iterator()  # it names its user only in what it holds
        if session.get_decoded().get(SESSION_KEY) == mine
    ]
    Session.objects.filter(session_key__in=rows_of_array(theirs, "text")).delete()
    return removed
