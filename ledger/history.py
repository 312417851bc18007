"""The newest events about one subject: for the pages of people, and who did something last."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from core.actions import Action
from core.database import planned_for_values
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
    return _newest(subject=subject, organisation_id=organisation_id, **which)


def last_write(path: str, organisation_id: int) -> Event | None:
    """The newest event of an agent that wrote a file at this path of an organisation."""
    return _newest(organisation_id=organisation_id, action=Action.FILE_WRITTEN, details__path=path)


def _newest(**which: Any) -> Event | None:
    with planned_for_values():
        return Event.objects.filter(**which).order_by("-seq").first()


def agents_of_changes(
    organisation_id: int, actions: Collection[Action], *, newest: int
) -> frozenset[str]:
    """The handles of the agents that an organisation's newest changes by these actions name."""
    found = _newest_changes(organisation_id, newest, "action", "subject")
    return frozenset(
        subject.removeprefix("agent:") for action, subject in found if action in actions
    )


def times_of_changes(organisation_id: int, actor: str, *, newest: int) -> list[datetime]:
    """When an actor made those of an organisation's newest changes that are its own."""
    found = _newest_changes(organisation_id, newest, "actor", "at")
    return [at for by, at in found if by == actor]


def _newest_changes(organisation_id: int, newest: int, *columns: str) -> list[tuple[Any, ...]]:
    changes = Event.objects.filter(
        organisation_id=organisation_id, details__has_key="policy_version"
    )
    with planned_for_values():
        return list(changes.order_by("-seq").values_list(*columns)[:newest])
