"""Events, connections of one's own, sealing, and tampering as a superuser would."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
from django.db import connection, transaction

from core.events import Event
from ledger import keys, services, sql
from ledger.models import Event as EventRow
from ledger.sealer import seal_events
from ledger.verification import VerificationReport, verify_ledger

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)


def make_event(**changes: object) -> Event:
    values: dict = {
        "action": "mail.delivered",
        "actor": "agent:backend_worker",
        "at": NOW,
        "organisation_id": 1,
        "subject": "mail:MAIL-1",
    }
    return Event(**(values | changes))


def record(**changes: object) -> int:
    with transaction.atomic():
        return services.insert_event(make_event(**changes))


def record_many(count: int) -> list[int]:
    with transaction.atomic():
        return [services.insert_event(make_event(subject=f"mail:{i}")) for i in range(count)]


PATIENCE = 300  # seconds; other tests on this server keep transactions open for as long as they run

NEWEST = """
SELECT coalesce(max(xid), 0) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM ledger_event WHERE era = (pg_control_system()).system_identifier
AND (%(seqs)s::bigint[] IS NULL OR seq = ANY(%(seqs)s))
"""


def wait_until_ended(seqs: list[int] | None = None) -> None:
    """Wait until nobody on this server has a transaction open that is older than these events."""
    _wait_for(NEWEST, {"seqs": seqs})


def wait_until_all_ended_before(xid: int) -> None:
    """Wait until every transaction with a smaller number has ended."""
    _wait_for(
        "SELECT %(xid)s <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint", {"xid": xid}
    )


def _wait_for(query: str, params: dict[str, object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(query, params)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.05)
    raise AssertionError("a transaction stays open on this server")


def seal_until_covered(seqs: list[int] | None = None) -> int:
    """Seal these events (all, if none are named), in as few seals as can be."""
    wait_until_ended(seqs)
    made = seal_events(now=NOW)
    open_events = EventRow.objects.exclude(seq__in=sealed_seqs())
    if seqs is not None:
        open_events = open_events.filter(seq__in=seqs)
    assert not open_events.exists(), "events stay unsealed"
    return made


def sealed_seqs() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.seq FROM ledger_event e JOIN ledger_seal s "
            "ON e.era = s.era AND e.xid >= s.lo AND e.xid < s.hi ORDER BY e.xid, e.seq"
        )
        return [seq for (seq,) in cursor.fetchall()]


def verify(trusted: dict[str, bytes] | None = None) -> VerificationReport:
    return verify_ledger(trusted=keys.trusted() if trusted is None else trusted, now=NOW)


@contextmanager
def own_connection() -> Iterator[psycopg.Connection]:
    """A second connection to the test database, with a transaction of its own."""
    params = connection.get_connection_params()
    words = {k: params[k] for k in ("dbname", "user", "password", "host", "port") if params.get(k)}
    with psycopg.connect(**words) as other:
        yield other
        other.rollback()


def insert_on(other: psycopg.Connection, **changes: object) -> int:
    cursor = other.execute(services.INSERT, sql.params(make_event(**changes)))
    return cursor.fetchone()[0]


def tamper(*statements: str) -> None:
    """Change what only grows, as a superuser who has taken the triggers off."""
    tables = ("ledger_event", "ledger_seal")
    with transaction.atomic(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in statements:
            cursor.execute(statement)
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
