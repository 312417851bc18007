"""The newest events about one subject: for the pages of people, and who did something last."""

from __future__ import annotations

from typing import Any

from ledger.models import Event

SHOWN_EVENTS = 200


def events_of(subject: str, organisation_id: int | None) -> list[Event]:
    """The newest events about one subject, of one organisation or of the installation itself."""
    if not subject:
        return []
    rows = Event.objects.filter(subject=subject, organisation_id=organisation_id)
    return list(rows.defer("digest").order_by("-seq")[:SHOWN_EVENTS])


def last_event(subject: str, organisation_id: int, **which: Any) -> Event | None:
    """The newest event about one subject of an organisation that has these values."""
    rows = Event.objects.filter(subject=subject, organisation_id=organisation_id, **which)
    return rows.order_by("-seq").first()
