"""Reading the whole ledger once and saying where it was changed first, or that it was not."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from django.db import DatabaseError, connection, transaction

from core.events import UnrecordableEvent
from ledger import keys
from ledger.events import FIELDS, parse, stamp
from ledger.models import Seal as SealRow
from ledger.rules import Chain, Fault, Finding, Keys, Leaves, check_event
from ledger.sealing import database_name, read_eras, read_seal, stream
from ledger.seals import Leaf, Seal

COLUMNS = ", ".join("details::text" if name == "details" else name for name in FIELDS)
LEAVES = f"""
SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event
WHERE era = %(era)s AND xid >= %(lo)s AND xid < %(hi)s ORDER BY era, xid, seq
"""
# What no seal of its era covers: behind the last one, or where no transaction ever was.
OPEN = f"""
SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event
WHERE era = %(era)s AND (xid >= %(hi)s OR xid < 0) ORDER BY xid, seq
"""
GUARDS = """
SELECT tgrelid::regclass::text FROM pg_trigger
WHERE tgname IN ('ledger_event_only_grows', 'ledger_seal_only_grows')
  AND tgenabled IN ('O', 'A') AND tgtype = 58
  AND tgfoid = to_regproc('ledger_refuse_change')
"""  # 58: before, statement, update, delete, truncate


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """What was read, and the first thing wrong."""

    seals: int
    events: int
    unsealed: int
    finding: Finding | None


class Verification:
    """One pass over seals and events in one snapshot; nothing is held but the seal at hand."""

    def __init__(self, trusted: Keys) -> None:
        self.chain = Chain(trusted)
        self.events = 0
        self.unsealed = 0

    def run(self) -> VerificationReport:
        """Verify seals with their events, the end of the chain, and what is not sealed yet."""
        finding = self._seals() or self._head() or self._unsealed()
        return VerificationReport(
            seals=self.chain.last.number if self.chain.last else 0,
            events=self.events,
            unsealed=self.unsealed,
            finding=finding,
        )

    def _seals(self) -> Finding | None:
        for row in SealRow.objects.order_by("number").iterator(chunk_size=50):
            seal = read_seal(row)
            finding = self.chain.check(seal) or self._leaves(seal, bytes(row.marks))
            if finding:
                return finding
        return None

    def _leaves(self, seal: Seal, marks: bytes) -> Finding | None:
        leaves = Leaves(seal, marks)
        with stream(LEAVES, {"era": seal.era, "lo": seal.lo, "hi": seal.hi}) as rows:
            for row in rows:
                finding = self._leaf(leaves, row)
                if finding:
                    return finding
        return leaves.close()

    def _leaf(self, leaves: Leaves, row: tuple[Any, ...]) -> Finding | None:
        self.events += 1
        try:
            leaf = read_leaf(row)
        except UnrecordableEvent as error:
            return _unreadable(row, error, leaves.seal.number)
        return leaves.add(leaf)

    def _head(self) -> Finding | None:
        """Compare the chain's end with the last seal that this machine saw."""
        with connection.cursor() as cursor:
            known = keys.known_head(database_name(cursor))
        if known is None:
            return None
        row = SealRow.objects.filter(number=known[0]).first()
        if row is not None and bytes(row.digest).hex() == known[1]:
            return None
        message = "this machine has seen this seal; the chain ends before it or goes on otherwise"
        return Finding(fault=Fault.SEAL_HEAD, seal=known[0], message=message)

    def _unsealed(self) -> Finding | None:
        with connection.cursor() as cursor:
            eras = read_eras(cursor)
        for era in eras:
            with stream(OPEN, {"era": era.era, "hi": era.sealed}) as rows:
                for row in rows:
                    finding = self._open(row)
                    if finding:
                        return finding
        return None

    def _open(self, row: tuple[Any, ...]) -> Finding | None:
        self.unsealed += 1
        if row[1] < 0:
            message = "it was inserted outside every transaction"
            return Finding(fault=Fault.EVENT_INSERTED, message=message, seq=row[2])
        try:
            return check_event(read_leaf(row))
        except UnrecordableEvent as error:
            return _unreadable(row, error, None)


def verify_ledger(*, trusted: Keys) -> VerificationReport:
    """Verify the database in one read-only snapshot; memory does not grow with the ledger."""
    with snapshot():
        report = Verification(trusted).run()
    return report if report.finding else replace(report, finding=check_guards())


def check_guards() -> Finding | None:
    """Check that the database refuses changes of both tables, by asking it to change nothing."""
    with connection.cursor() as cursor:
        cursor.execute(GUARDS)
        standing = {table for (table,) in cursor.fetchall()}
    for table in ("ledger_event", "ledger_seal"):
        if table not in standing or not _refuses(table):
            message = f"the trigger that refuses changes of {table} is off, gone or altered"
            return Finding(fault=Fault.GUARD, message=message)
    return None


def _refuses(table: str) -> bool:
    key = {"ledger_event": "seq", "ledger_seal": "number"}[table]
    update = f"UPDATE {table} SET {key} = {key} WHERE false"
    delete = f"DELETE FROM {table} WHERE false"
    for attempt in (update, delete):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(attempt)
        except DatabaseError:
            continue
        return False
    return True


@contextmanager
def snapshot() -> Iterator[None]:
    """Open a read-only transaction that sees one moment."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def read_leaf(row: tuple[Any, ...]) -> Leaf:
    """Return a row of era, xid, seq, digest and FIELDS; raises UnrecordableEvent."""
    era, xid, seq, digest, *values = row
    fields = dict(zip(FIELDS, values, strict=True))
    fields["id"] = str(fields["id"])
    fields["at"] = stamp(fields["at"])
    fields["details"] = parse(fields["details"])
    return Leaf(era=era, xid=xid, seq=seq, digest=bytes(digest), fields=fields)


def _unreadable(row: tuple[Any, ...], error: Exception, seal: int | None) -> Finding:
    return Finding(fault=Fault.EVENT_FIELDS, message=str(error), seal=seal, seq=row[2])
