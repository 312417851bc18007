"""Reading the whole ledger once and saying where it was changed first, or that it was not."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from django.db import connection, transaction
from psycopg import Connection

from core.database import MAY_REST
from core.events import UnrecordableEvent
from ledger import keys
from ledger.canonical import FIELDS, parse, stamp
from ledger.chain_end import check_head
from ledger.composing import AT
from ledger.guards import check_guards
from ledger.hidden import count_rows, is_hidden, name_hidden
from ledger.parallel import plan_parts, verify_apart
from ledger.rules import Chain, Finding, Keys, Leaves, SealFault, check_event
from ledger.seal_format import Leaf, Seal, SealColumns, read_seal
from ledger.sealer import read_backlog, read_eras, stream
from ledger.spans import HIGHEST, Part, Span, chain_before, read_seals, verify_span

READ_AS = {"details": "details::text", "at": AT}
COLUMNS = ", ".join(READ_AS.get(name, name) for name in FIELDS)
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
# The last seal that begins before an event is the only one that can cover it: the others end there.
SEALED_BY = """
SELECT e.seq, CASE WHEN s.hi > e.xid THEN s.number END FROM ledger_event e LEFT JOIN LATERAL (
    SELECT number, hi FROM ledger_seal WHERE era = e.era AND lo <= e.xid ORDER BY lo DESC LIMIT 1
) s ON true WHERE e.seq = ANY(%(seqs)s)
"""


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

    def __init__(
        self, trusted: Keys, now: datetime, *, first: int = 1, seen: keys.Seen | None = None
    ) -> None:
        self.trusted = trusted
        self.seen = seen  # the last seal that this machine saw before the snapshot
        self.chain = Chain(trusted, first=first)
        self.now = now
        self.events = 0
        self.unsealed = 0

    def run(self, parts: Sequence[Part] = (Part(),)) -> VerificationReport:
        """Verify seals with their events, the end of the chain, and what is not sealed yet.

        A process of its own verifies each part but the first.
        """
        finding = self._seals(parts) or self._count_seals() or self._head()
        finding = finding or self._unsealed() or self._count_events() or self._backlog()
        return VerificationReport(
            seals=self.chain.last.number if self.chain.last else 0,
            reaches=self.chain.last.at if self.chain.last else None,
            events=self.events,
            unsealed=self.unsealed,
            finding=finding,
        )

    def _seals(self, parts: Sequence[Part]) -> Finding | None:
        first, *others = parts
        with verify_apart(others, self.trusted) as found:
            finding = self.check_seals(first)
            while not finding and (each := next(found, None)):
                finding = self._check_apart(*each)
        if others and not finding:
            self.chain = chain_before(_database(), self.trusted, HIGHEST)
        return finding

    def _check_apart(self, part: Part, span: Span | None) -> Finding | None:
        """Count what another process verified of a part, and check what it did not."""
        self.events += span.events if span else 0
        first = span.doubt if span else part.first
        if first is None:
            return None
        self.chain = chain_before(_database(), self.trusted, first)
        return self.check_seals(replace(part, first=first))

    def check_seals(self, part: Part) -> Finding | None:
        """Check these seals and every event under them; the chain is at the one before them."""
        while True:
            span = verify_span(_database(), part, self.chain)
            self.events += span.events
            if span.doubt is None:
                return None
            with closing(read_seals(_database(), Part(first=span.doubt, last=span.doubt))) as rows:
                finding = self.check_seal(next(rows))
            if finding:
                return finding
            part = replace(part, first=span.doubt + 1)

    def check_seal(self, row: SealColumns) -> Finding | None:
        """Check the next seal and, one by one, every event under it."""
        seal = read_seal(row)
        finding = self.chain.check(seal) or self._leaves(seal, bytes(row.marks))
        if finding and finding.fault is SealFault.EVENT_MISSING and self._hides(seal, finding.seq):
            return name_hidden(finding)
        return finding

    def _hides(self, seal: Seal, seq: int | None) -> bool:
        """Whether a sealed event is in its place, and only what is read in order lacks it."""
        with stream(LEAVES, {"era": seal.era, "lo": seal.lo, "hi": seal.hi}) as rows:
            is_listed = any(row[2] == seq for row in rows)
        return not is_listed and is_hidden(seal, seq)

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
        last = self.chain.last
        return check_head(self.seen or keys.known_head(), last.number if last else None)

    def _count_seals(self) -> Finding | None:
        return count_rows("ledger_seal", self.chain.last.number if self.chain.last else 0)

    def _count_events(self) -> Finding | None:
        return count_rows("ledger_event", self.events + self.unsealed)

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
        message += (
            f"; {backlog.holder} keeps a transaction open"
            if backlog.holder
            else "; `manage.py ledger seal` says why"
        )
        return Finding(fault=SealFault.EVENT_UNSEALED, message=message, seq=backlog.seq)

    def _open(self, row: tuple[Any, ...]) -> Finding | None:
        self.unsealed += 1
        if row[1] < 0:
            message = "it was inserted outside every transaction"
            return Finding(fault=SealFault.EVENT_INSERTED, message=message, seq=row[2])
        return _check_open(row)


def _database() -> Connection:
    """The driver's own connection of this thread's transaction."""
    connection.ensure_connection()
    return cast("Connection", connection.connection)


def verify_ledger(*, trusted: Keys, now: datetime) -> VerificationReport:
    """Verify the database in one read-only snapshot; memory does not grow with the ledger.

    The sealer goes on meanwhile: the snapshot does not hold the seals that it makes.
    """
    seen = keys.known_head()
    with snapshot():
        report = Verification(trusted, now, seen=seen).run(plan_parts())
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
        sealed_by = seals_over(seqs)
        unsealed = [seq for seq, number in sealed_by.items() if number is None]
        numbers = tuple(sorted({n for n in sealed_by.values() if n is not None}))
        found = (
            Verification(trusted, now, first=number).check_seals(Part(first=number, last=number))
            for number in numbers
        )
        finding = next((each for each in found if each), None) or _check_unsealed(unsealed)
    return EventsReport(numbers, len(unsealed), finding)


def seals_over(seqs: Sequence[int]) -> dict[int, int | None]:
    """The number of the seal over each of these events; None for one that waits for its seal.

    It costs the same in a ledger of few seals and in one of millions.
    """
    with connection.cursor() as cursor:
        cursor.execute(SEALED_BY, {"seqs": list(seqs)})
        return dict(cursor.fetchall())


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


@contextmanager
def snapshot() -> Iterator[None]:
    """Open a read-only transaction that sees one moment, however long it is looked at."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(MAY_REST)
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
    return Finding(fault=SealFault.EVENT_FIELDS, message=str(error), seal=seal, seq=row[2])
