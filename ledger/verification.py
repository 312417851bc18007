"""Reading the whole ledger once and saying where it was changed first, or that it was not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import DatabaseError, connection, transaction

from core.events import UnrecordableEvent
from ledger import keys
from ledger.canonical import FIELDS, parse, stamp
from ledger.models import Seal as SealRow
from ledger.rules import Chain, Fault, Finding, Keys, Leaves, check_event
from ledger.seal_format import Leaf, Seal
from ledger.sealer import read_backlog, read_eras, read_seal, stream

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
ALONE = f"SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event WHERE seq = ANY(%(seqs)s)"
SEALED_BY = """
SELECT e.seq, s.number FROM ledger_event e LEFT JOIN LATERAL (
    SELECT number FROM ledger_seal WHERE era = e.era AND lo <= e.xid AND hi > e.xid LIMIT 1
) s ON true WHERE e.seq = ANY(%(seqs)s)
"""
ADOPT = "If people restored or moved the ledger, they accept it with `manage.py ledger adopt`"
GUARDS = """
SELECT t.tgrelid::regclass::text FROM pg_trigger t
JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang
WHERE t.tgname IN ('ledger_event_only_grows', 'ledger_seal_only_grows')
  AND t.tgenabled IN ('O', 'A') AND t.tgtype = 58 AND t.tgqual IS NULL
  AND p.oid = to_regproc('ledger_refuse_change') AND l.lanname = 'plpgsql'
  AND p.proconfig IS NULL AND btrim(p.prosrc) = btrim(%(source)s)
"""  # 58: before, statement, update, delete, truncate
# What could swallow, change or hide rows: other triggers, rules, row security, child tables; and
# settings with which triggers are not asked.
STRANGE = """
SELECT 'the trigger ' || tgname FROM pg_trigger
WHERE tgrelid = %(table)s::regclass AND NOT tgisinternal AND tgname <> %(table)s || '_only_grows'
UNION ALL SELECT 'the rule ' || rulename FROM pg_rewrite WHERE ev_class = %(table)s::regclass
UNION ALL SELECT 'row security' FROM pg_class WHERE oid = %(table)s::regclass AND relrowsecurity
UNION ALL SELECT 'the table ' || inhrelid::regclass FROM pg_inherits
WHERE inhparent = %(table)s::regclass
UNION ALL SELECT 'a role or database whose sessions ask no trigger' FROM pg_db_role_setting
WHERE array_to_string(setconfig, ' ') ILIKE '%%session_replication_role%%'
LIMIT 1
"""
REFUSAL = """
BEGIN
    RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = 'What happened stays written; record a new event that corrects it.';
END
"""
"""The body of `ledger_refuse_change`, as its migration made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """What was read, how far the chain of seals reaches, and the first thing wrong."""

    seals: int
    reaches: datetime | None = None
    events: int
    unsealed: int
    finding: Finding | None


class Verification:
    """One pass over seals and events in one snapshot; nothing is held but the seal at hand."""

    def __init__(self, trusted: Keys, now: datetime, *, first: int = 1) -> None:
        self.chain = Chain(trusted, first=first)
        self.now = now
        self.events = 0
        self.unsealed = 0

    def run(self) -> VerificationReport:
        """Verify seals with their events, the end of the chain, and what is not sealed yet."""
        finding = self._seals() or self._head() or self._unsealed() or self._backlog()
        return VerificationReport(
            seals=self.chain.last.number if self.chain.last else 0,
            reaches=self.chain.last.at if self.chain.last else None,
            events=self.events,
            unsealed=self.unsealed,
            finding=finding,
        )

    def _seals(self) -> Finding | None:
        for row in SealRow.objects.order_by("number").iterator(chunk_size=50):
            finding = self.check_seal(row)
            if finding:
                return finding
        return None

    def check_seal(self, row: SealRow) -> Finding | None:
        """Check the next seal and every event under it."""
        seal = read_seal(row)
        return self.chain.check(seal) or self._leaves(seal, bytes(row.marks))

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
        known, last = keys.known_head(), self.chain.last
        if known is None:
            if last is None:
                return None
            message = f"this machine has not seen this chain. {ADOPT}"
            return Finding(fault=Fault.SEAL_HEAD, seal=last.number, message=message)
        row = SealRow.objects.filter(number=known[0]).first()
        if row is not None and bytes(row.digest).hex() == known[1]:
            return None
        message = (
            "this machine has seen this seal; the chain ends before it or goes on otherwise. "
            f"{ADOPT}"
        )
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

    def _backlog(self) -> Finding | None:
        """Check that sealing keeps up: what is not sealed could be deleted unseen."""
        backlog = read_backlog(now=self.now)
        if backlog is None or not backlog.is_late:
            return None
        message = f"this event is not sealed after {backlog.seconds:.0f} s"
        message += f"; {backlog.holder} keeps a transaction open" if backlog.holder else ""
        return Finding(fault=Fault.EVENT_UNSEALED, message=message, seq=backlog.seq)

    def _open(self, row: tuple[Any, ...]) -> Finding | None:
        self.unsealed += 1
        if row[1] < 0:
            message = "it was inserted outside every transaction"
            return Finding(fault=Fault.EVENT_INSERTED, message=message, seq=row[2])
        return _check_open(row)


def verify_ledger(*, trusted: Keys, now: datetime) -> VerificationReport:
    """Verify the database in one read-only snapshot; memory does not grow with the ledger."""
    with snapshot():
        report = Verification(trusted, now).run()
    return report if report.finding else replace(report, finding=check_guards())


@dataclass(frozen=True, slots=True)
class EventsReport:
    """What verifying a few events found: the seals over them, how many wait for one, the fault."""

    seals: tuple[int, ...]
    unsealed: int
    finding: Finding | None


def verify_events(seqs: Sequence[int], *, trusted: Keys, now: datetime) -> EventsReport:
    """Verify some events and, whole, each seal over them; the rest of the ledger is not read."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(SEALED_BY, {"seqs": list(seqs)})
            sealed_by = dict(cursor.fetchall())
        unsealed = [seq for seq, number in sealed_by.items() if number is None]
        numbers = tuple(sorted({n for n in sealed_by.values() if n is not None}))
        found = (
            Verification(trusted, now, first=row.number).check_seal(row)
            for row in SealRow.objects.filter(number__in=numbers).order_by("number").iterator()
        )
        finding = next((each for each in found if each), None) or _check_unsealed(unsealed)
    return EventsReport(numbers, len(unsealed), finding)


def _check_unsealed(seqs: Sequence[int]) -> Finding | None:
    """The first of these events that does not match its own digest."""
    with connection.cursor() as cursor:
        cursor.execute(ALONE, {"seqs": list(seqs)})
        rows = cursor.fetchall()
    return next((each for each in map(_check_open, rows) if each), None)


def _check_open(row: tuple[Any, ...]) -> Finding | None:
    """Check an event that no seal covers yet against its own digest."""
    try:
        return check_event(read_leaf(row))
    except UnrecordableEvent as error:
        return _unreadable(row, error, None)


def check_guards() -> Finding | None:
    """Check that the database refuses changes of both tables, by asking it to change nothing."""
    with connection.cursor() as cursor:
        cursor.execute(GUARDS, {"source": REFUSAL})
        standing = {table for (table,) in cursor.fetchall()}
    for table in ("ledger_event", "ledger_seal"):
        if table not in standing or not _refuses(table):
            message = f"the trigger that refuses changes of {table} is off, gone or altered"
            return Finding(fault=Fault.GUARD, message=message)
        if strange := _strange(table):
            message = f"{table} has {strange}, which the ledger never made"
            return Finding(fault=Fault.GUARD, message=message)
    return None


def _strange(table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(STRANGE, {"table": table})
        found = cursor.fetchone()
    return str(found[0]) if found else ""


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
    fields["details"] = _parse_details(fields["details"])
    return Leaf(era=era, xid=xid, seq=seq, digest=bytes(digest), fields=fields)


# Most details come again and again: the same two agents, the same change. They are only read.
_parse_details = lru_cache(maxsize=4096)(parse)


def _unreadable(row: tuple[Any, ...], error: Exception, seal: int | None) -> Finding:
    return Finding(fault=Fault.EVENT_FIELDS, message=str(error), seal=seal, seq=row[2])
