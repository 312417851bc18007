"""What the live feed shows: new events of the ledger, each once, to people who may read it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user
from django.db.models import QuerySet
from django.http import QueryDict
from django_otp import DEVICE_ID_SESSION_KEY, devices_for_user

from core.database import database_now
from core.ids import row_id
from core.people import Organisations, organisations_of
from ledger.models import Event
from ledger.searching import find_events
from nexus_site.console.first_steps import has_to_choose_password, needs_second_factor
from nexus_site.console.sessions import SessionStore

SEES = "ledger.view_event"
WINDOW = 500
"""Numbers that are read again each time: an event may become visible after a later one."""
PAGE = 50


def watching_user(cookie: str) -> str:
    """The username of the session's person if they may read the ledger now; else empty."""
    request = _request_of(cookie)
    if not (admin.site.has_permission(request) and request.user.has_perm(SEES)):
        return ""
    if has_to_choose_password(request) or not _has_second_factor(request):
        return ""  # this person has something to do before any page
    return str(request.user.get_username())


def _has_second_factor(request: Any) -> bool:
    """Whether the session was opened with an authenticator that its person still has, if asked."""
    if not needs_second_factor(request):
        return True
    used = request.session.get(DEVICE_ID_SESSION_KEY)
    return used in {each.persistent_id for each in devices_for_user(request.user)}


def organisations_watched(cookie: str) -> Organisations:
    """The organisations that the session's person sees now."""
    return organisations_of(_request_of(cookie).user)


def _request_of(cookie: str) -> Any:
    request: Any = SimpleNamespace(session=SessionStore(cookie), META={}, user=None)
    request.user = get_user(request)
    return request


def session_of(headers: dict[bytes, bytes]) -> str:
    """The key of the session that a request's cookies name; empty without one."""
    name = settings.SESSION_COOKIE_NAME
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


@dataclass
class PageWatcher:
    """One page that watches: its filters, and how far it has come."""

    asked: QueryDict
    organisations: Organisations = frozenset()
    last: int = 0
    seen: deque[int] = field(default_factory=lambda: deque(maxlen=2 * WINDOW))

    def begin(self) -> None:
        """From now on: what is visible already does not come."""
        recent = Event.objects.order_by("-seq").values_list("seq", flat=True)[:WINDOW]
        self.seen.extend(reversed(list(recent)))
        self.last = max(self.seen, default=0)

    def look(self, cookie: str, *, prove: bool) -> list[dict[str, Any]] | None:
        """What is sent now; None where the session's person may no longer watch.

        Whether they may, and which organisations they see, is asked after the events were read and
        before any is sent; without events only to `prove` it.
        """
        events = self.read()
        if not (events or prove):
            return events
        if not watching_user(cookie):
            return None
        before, self.organisations = self.organisations, organisations_watched(cookie)
        if self.organisations in (before, None):
            return events
        return [event for event in events if event["organisation_id"] in self.organisations]

    def read(self) -> list[dict[str, Any]]:
        """The events that became visible since the last time, oldest first."""
        rows = self.filtered().filter(seq__gt=self.last - WINDOW).exclude(seq__in=self.seen)
        columns = ("seq", "at", "organisation_id", "actor", "action", "decision", "code", "tool",
                   "subject", "reason")  # fmt: skip
        found = list(rows.order_by("seq").values(*columns)[:PAGE])
        for event in found:
            self.seen.append(event["seq"])
            self.last = max(self.last, event["seq"])
        return found

    def filtered(self) -> QuerySet[Event]:
        """The events that this page asks for."""
        rows = Event.objects.all()
        if self.organisations is not None:
            rows = rows.filter(organisation_id__in=self.organisations)
        organisation = row_id(self.asked.get("organisation", ""))
        if organisation is not None:
            rows = rows.filter(organisation_id=organisation)
        if self.asked.get("decision") in ("allow", "deny"):
            rows = rows.filter(decision=self.asked["decision"])
        return find_events(rows, self.asked.get("q", "")[:200], now=database_now())
