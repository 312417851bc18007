"""Sealing what has surely committed: the only writer of seals. `toolbox.schedule` calls it."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from core.database import fetch_row
from ledger import keys
from ledger.chain_end import NO_SEAL, Head, ask_folder, check_end, check_kept, last_seal
from ledger.merkle import Tree
from ledger.models import Seal as SealRow
from ledger.seal_format import GENESIS, Seal, mark, place_hash

LOCK = 0x6C65646765723031  # "ledger01": the advisory lock of the one sealer
BATCH = 4096  # leaves of one seal; a larger transaction is sealed whole
FETCH = 2000
LAST = 2**63 - 1
LATEST = 60.0  # seconds within which every event is sealed

logger = logging.getLogger(__name__)


class TransactionsWentBack(RuntimeError):
    """This cluster was set back behind its seals: what it writes can't be told from before."""


class ForeignEnd(RuntimeError):
    """The chain ends with a seal that is not ours: what is built on it would vouch for it."""


@dataclass(frozen=True, slots=True)
class Era:
    """One cluster's events: sealed are transactions before `sealed`, ended those before `ended`."""

    era: int
    sealed: int
    ended: int


@dataclass(frozen=True, slots=True)
class Range:
    """Transactions `lo <= xid < hi` of one era, all of them ended."""

    era: int
    lo: int
    hi: int


def seal_events(now: datetime, *, batch: int = BATCH) -> int:
    """Seal everything that had committed when this began; return the number of seals made.

    What commits meanwhile waits for the next run: under constant traffic there would else be a seal
    for every few events. Each seal is a transaction of its own, so a killed sealer loses nothing
    but the seal it was at. Where another sealer is at work, this one leaves at once. Raises
    KeyMissing, ForeignEnd, and OSError where this machine cannot keep the head: it makes no other
    seal then, and everybody is told of events that wait.
    """
    ask_folder()
    made, before = 0, _first_running()
    _keep_head()
    while seal_next(now=now, batch=batch, before=before) is not None:
        made += 1
        _keep_head()
    backlog = read_backlog(now=now)
    if backlog and backlog.is_late:
        logger.error(
            "event %s is not sealed after %.0f s; held back by %s",
            backlog.seq,
            backlog.seconds,
            backlog.holder or "an unknown transaction",
        )
    return made


def _first_running() -> int:
    """The oldest transaction of this cluster that may still be open: all before it have ended."""
    (oldest,) = fetch_row("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return int(oldest)


def seal_next(*, now: datetime, batch: int = BATCH, before: int = LAST) -> Seal | None:
    """Seal the next batch of this cluster's transactions before one, or of another cluster's.

    None if there is nothing, or another sealer holds the lock. Raises ForeignEnd.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return None
        last = last_seal()
        span = _next_range(cursor, batch, before)
        if span is None:
            return None
        signer, known = keys.signer(may_create=last is None), keys.known_head()
        if last is None and known is None:
            keys.remember_head(*NO_SEAL)
        if last and (wrong := check_end(known, last.number)):
            raise ForeignEnd(f"{wrong}; no further seal is made behind it")
        seal, marks = _build(span, last, now, signer.key_id)
        seal = replace(seal, digest=seal.compute_digest())
        seal = replace(seal, signature=signer.sign(seal.digest))
        _insert(seal, marks)
        return seal


def adopt_head(last: Head | None) -> None:
    """Accept the chain, which ends with this seal, as this machine's.

    After a restore or a move, by a person's decision only, whose event was committed before.
    """
    if last is None:
        keys.forget_head()
    else:
        keys.remember_head(last.number, last.digest.hex())


class BlockingProcess(NamedTuple):
    """The process of the database whose open transaction holds sealing back."""

    pid: int
    role: str
    database: str

    def __str__(self) -> str:
        return f"process {self.pid} (role {self.role}, database {self.database})"


@dataclass(frozen=True, slots=True)
class Backlog:
    """The oldest event that is not sealed, and who holds sealing back, if somebody does."""

    seq: int
    seconds: float
    holder: BlockingProcess | None

    @property
    def is_late(self) -> bool:
        """True if it should have been sealed long ago."""
        return self.seconds > LATEST


def read_backlog(*, now: datetime) -> Backlog | None:
    """Return what waits longest for its seal; None where everything is sealed."""
    late = now - timedelta(seconds=LATEST)
    with connection.cursor() as cursor:
        oldest: tuple[int, datetime] | None = None
        for era in read_eras(cursor):
            cursor.execute(OLDEST, {"era": era.era, "hi": era.sealed, "late": late})
            row = cursor.fetchone()
            if row and (oldest is None or row[1] < oldest[1]):
                oldest = row
        if oldest is None:
            return None
        cursor.execute(HOLDER, {"latest": LATEST})
        holder = cursor.fetchone()
    seconds = (now - oldest[1]).total_seconds()
    return Backlog(oldest[0], seconds, BlockingProcess(*holder) if holder else None)


@contextmanager
def stream(sql: str, params: Mapping[str, Any]) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield the rows of a query from a server-side cursor: memory does not grow with the ledger."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, params)
        yield (row for rows in iter(lambda: cursor.fetchmany(FETCH), []) for row in rows)


# The eras found by skipping from one to the next along the index: there are few, and many events.
ERAS = """
WITH RECURSIVE eras AS (
    (SELECT era FROM ledger_event ORDER BY era LIMIT 1)
    UNION ALL
    SELECT (SELECT e.era FROM ledger_event e WHERE e.era > eras.era ORDER BY e.era LIMIT 1)
    FROM eras WHERE eras.era IS NOT NULL
)
SELECT era,
       coalesce((SELECT hi FROM ledger_seal s WHERE s.era = eras.era ORDER BY lo DESC LIMIT 1), 0),
       CASE WHEN era = (pg_control_system()).system_identifier
            THEN pg_snapshot_xmin(pg_current_snapshot())::text::bigint END
FROM eras WHERE era IS NOT NULL ORDER BY era = (pg_control_system()).system_identifier, era
"""
# One transaction more than fits is looked for; it is where the batch is cut.
# Some events have the time of a machine whose clock may be ahead; most have the database's.
# So behind any number of events that seem young, one that is late is looked for.
OLDEST = """
SELECT seq, at FROM (
    (SELECT seq, at FROM ledger_event WHERE era = %(era)s AND xid >= %(hi)s
     ORDER BY xid, seq LIMIT 200)
    UNION ALL
    (SELECT seq, at FROM ledger_event WHERE era = %(era)s AND xid >= %(hi)s AND at < %(late)s
     ORDER BY xid, seq LIMIT 1)
) AS found ORDER BY at, seq LIMIT 1
"""
# A transaction that began a moment ago does not keep old events from their seal: then the sealer
# itself has stopped. Of another role's transaction no start is shown, but its process, which is
# enough to find and end it. The database's own processes have no role and end by themselves.
HOLDER = """
SELECT pid, usename, coalesce(datname, '') FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_xid IS NOT NULL AND usename IS NOT NULL
AND coalesce(xact_start < clock_timestamp() - make_interval(secs => %(latest)s), true)
ORDER BY age(backend_xid) DESC LIMIT 1
"""
EDGE = """
SELECT min(xid), max(xid), count(*) FROM (
    SELECT xid FROM ledger_event WHERE era = %(era)s AND xid >= %(lo)s AND xid < %(hi)s
    ORDER BY xid, seq LIMIT %(limit)s
) AS batch
"""


def read_eras(cursor: CursorWrapper) -> list[Era]:
    """Return the eras in the ledger, this cluster's last."""
    cursor.execute(ERAS)
    return [Era(era, hi, LAST if end is None else end) for era, hi, end in cursor.fetchall()]


def _next_range(cursor: CursorWrapper, batch: int, before: int) -> Range | None:
    """Find the next transactions to seal, earlier clusters' first; raises TransactionsWentBack.

    In this cluster everything before the oldest running transaction has ended. What a restored dump
    brought from another cluster has ended all the more: that era is sealed to its last event.
    """
    for era in read_eras(cursor):
        if era.ended < era.sealed:
            raise TransactionsWentBack(
                f"transactions up to {era.sealed} are sealed, "
                f"but the cluster counts from {era.ended} again"
            )
        end = era.ended if era.ended == LAST else min(era.ended, before)
        cursor.execute(EDGE, {"era": era.era, "lo": era.sealed, "hi": end, "limit": batch + 1})
        first, last, count = cursor.fetchone()
        if count > batch:
            return Range(era.era, era.sealed, last if last > first else first + 1)
        if count:
            return Range(era.era, era.sealed, last + 1 if end == LAST else end)
    return None


LEAVES = """
SELECT xid, seq, digest FROM ledger_event
WHERE era = %(era)s AND xid >= %(lo)s AND xid < %(hi)s ORDER BY xid, seq
"""


def _build(span: Range, last: Head | None, now: datetime, key_id: str) -> tuple[Seal, bytes]:
    tree, marks = Tree(), bytearray()
    with stream(LEAVES, {"era": span.era, "lo": span.lo, "hi": span.hi}) as rows:
        for xid, seq, digest in rows:
            leaf = place_hash(span.era, xid, seq, bytes(digest))
            tree.add(leaf)
            marks += mark(seq, leaf)
    seal = Seal(
        number=last.number + 1 if last else 1,
        era=span.era,
        lo=span.lo,
        hi=span.hi,
        count=tree.size,
        root=tree.root(),
        marks=sha256(marks).digest(),
        previous=last.digest if last else GENESIS,
        at=now,
        key_id=key_id,
    )
    return seal, bytes(marks)


def _insert(seal: Seal, marks: bytes) -> None:
    SealRow.objects.create(
        number=seal.number,
        at=seal.at,
        era=seal.era,
        lo=seal.lo,
        hi=seal.hi,
        count=seal.count,
        root=seal.root,
        marks=marks,
        previous=seal.previous,
        key_id=seal.key_id,
        digest=seal.digest,
        signature=seal.signature,
    )


def _keep_head() -> None:
    """Keep the last seal as this machine's head, where what lies behind the kept one is ours."""
    last, known = last_seal(), keys.known_head()
    if last is None or known == (last.number, last.digest.hex()):
        return
    if wrong := check_kept(known, last.number):
        logger.error("the head stays where it is: %s", wrong)
    else:
        keys.remember_head(last.number, last.digest.hex())
