"""Finding events by what people type: each word by its form, so that an index serves."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from core.ids import row_id
from ledger.models import Event

SEARCHED = 200_000
"""A word that no index knows is looked for among that many of the newest events."""
HAS_SUBJECT = ~Q(subject="")  # so that the index of subjects serves
ACTORS = ("agent:", "human:", "system:")
IDS = {"MAIL-": "mail", "CON-": "contract", "CASE-": "case"}
"""How the ids of rows begin, and how the ledger calls such a row."""


def find_events(rows: QuerySet[Event], words: str, *, now: datetime) -> QuerySet[Event]:
    """The events that every word of a search finds.

    A word is an event's number or id, an actor, a subject, a row's id, an agent's or person's
    name, a tool, a code, an action, a request id, a day (`2026-11-22`, `today`, `yesterday`).
    """
    for word in words.split():
        rows = rows.filter(_of(word, now))
    return rows


def _of(word: str, now: datetime) -> Q:
    day = _day(word, now)
    if day is not None:
        start, end = (datetime.combine(day, at, UTC) for at in (time.min, time.max))
        return Q(at__gte=start, at__lte=end)
    seq = row_id(word)
    if seq is not None:
        return Q(seq=seq)
    for prefix, noun in IDS.items():
        if word.upper().startswith(prefix):
            return HAS_SUBJECT & Q(subject__startswith=f"{noun}:{prefix}{word[len(prefix) :]}")
    if word.startswith(ACTORS):
        return _recent(Q(actor__startswith=word))
    if ":" in word:
        return HAS_SUBJECT & Q(subject__startswith=word)
    return _recent(_named(word))


def _named(word: str) -> Q:
    names = Q(actor__in=[f"{kind}{word}" for kind in ACTORS])
    names |= Q(tool=word) | Q(action=word) | Q(code=word.upper()) | Q(request_id=word)
    try:
        return names | Q(id=UUID(word))
    except ValueError:
        return names


def _recent(condition: Q) -> Q:
    newest = Event.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    return condition & Q(seq__gt=newest - SEARCHED)


def _day(word: str, now: datetime) -> date | None:
    named = {"today": 0, "yesterday": 1}.get(word.lower())
    if named is not None:
        return (now.astimezone(UTC) - timedelta(days=named)).date()
    try:
        return date.fromisoformat(word) if len(word) == len("2026-11-22") else None
    except ValueError:
        return None
