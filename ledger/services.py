"""Writing to the ledger."""

from django.db import connection

from core.events import Event
from ledger import sql

INSERT = f"{sql.INSERT} RETURNING seq"


class OutsideTransaction(RuntimeError):
    """An event was recorded where no transaction is open: it could outlive its effect."""


def record(event: Event) -> int:
    """Write the event in the transaction of its effect and return its sequence number.

    Raises OutsideTransaction, or UnrecordableEvent; either way the effect must not happen.
    """
    if not connection.in_atomic_block:
        raise OutsideTransaction(f"{event.action} needs the transaction of its effect")
    return record_alone(event)


def record_alone(event: Event) -> int:
    """Write an event that has no effect beside it, such as a refusal, as a statement by itself.

    Returns its sequence number. Raises UnrecordableEvent.
    """
    with connection.cursor() as cursor:
        cursor.execute(INSERT, sql.params(event))
        return int(cursor.fetchone()[0])
