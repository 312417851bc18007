"""Writing to the ledger."""

from collections.abc import Iterable
from datetime import datetime
from typing import Unpack

from django.db import connection

from core.actions import Action
from core.actors import Actor
from core.database import fetch_row, needs_transaction
from core.events import Event, EventFields
from core.people import require_still
from ledger import sql

INSERT = f"{sql.INSERT} RETURNING seq"


def record(action: Action, *, by: Actor, at: datetime, **fields: Unpack[EventFields]) -> int:
    """Write what an actor did in the transaction of its effect; return its sequence number.

    Raises OutsideTransaction, UnrecordableEvent, or Denied where a person has lost a right since
    their request began (Spec: people 68); each way the effect must not happen.
    """
    require_still(by)
    return insert_event(Event.by(by, action, at=at, **fields))


@needs_transaction
def insert_event(event: Event) -> int:
    """Write an event in the transaction of its effect; as `record`."""
    return record_alone(event)


@needs_transaction
def insert_events(events: Iterable[Event]) -> None:
    """Write many events in the transaction of their effects; as `insert_event`."""
    with connection.cursor() as cursor:
        cursor.executemany(sql.INSERT, [sql.params(event) for event in events])


def record_alone(event: Event) -> int:
    """Write an event without an effect, such as a refusal, as a statement by itself.

    Returns its sequence number. Raises UnrecordableEvent.
    """
    (number,) = fetch_row(INSERT, sql.params(event))
    return int(number)
