"""Verifying consecutive seals with their events fast, and finding the first one in doubt.

Needs psycopg but no Django, so that further processes start quickly.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from psycopg import Connection
from psycopg.rows import namedtuple_row

from ledger.composing import AT, copy_statement, has_known_shape
from ledger.leaves import Details, DoubtfulEvent, LeafReader
from ledger.merkle import Tree
from ledger.rules import Chain, Keys
from ledger.seal_format import MARK, Seal, SealColumns, read_seal

MOST_EVENTS = 50_000  # under the seals that a single statement reads
MOST_SEALS = 500
CHUNK = 4096  # leaves that are hashed into the tree at once

SEALS = f"""
SELECT number, {AT} AS at, era, lo, hi, count, root, marks, previous, key_id, digest, signature
FROM ledger_seal WHERE number BETWEEN %(first)s AND %(last)s ORDER BY number
"""
LAST_BEFORE = "SELECT max(number) FROM ledger_seal WHERE number < %s"
REACHED = "SELECT era, max(hi) FROM ledger_seal WHERE number < %s GROUP BY era"
FETCH = 50  # seals, with their marks, that are in memory at once
LOWEST, HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The seals with the numbers `first` to `last`."""

    first: int = LOWEST
    last: int = HIGHEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What was verified of consecutive seals: how many events, and the first seal in doubt.

    A seal is in doubt if it could not be shown to be whole. The caller then reads it event by event
    and says what is wrong with it, if anything is.
    """

    events: int
    doubt: int | None = None


def read_seals(connection: Connection, part: Part) -> Generator[SealColumns]:
    """The seals of a part in order, inside an open transaction."""
    with connection.cursor("ledger_seals", row_factory=namedtuple_row) as cursor:
        cursor.itersize = FETCH
        cursor.execute(SEALS, {"first": part.first, "last": part.last})
        for row in cursor:
            yield cast("SealColumns", row)


def chain_before(connection: Connection, keys: Keys, number: int) -> Chain:
    """The chain up to the last seal before this number, which is believed here."""
    found = connection.execute(LAST_BEFORE, [number]).fetchone()
    before = found[0] if found else None
    if before is None:
        return Chain(keys)
    reached: dict[int, int] = dict(connection.execute(REACHED, [number]).fetchall())
    with closing(read_seals(connection, Part(first=before, last=before))) as rows:
        return Chain(keys, last=read_seal(next(rows)), reached=reached)


def verify_span(connection: Connection, part: Part, chain: Chain) -> Span:
    """Follow the chain over these seals and compute each root again from what its events say.

    The chain is left at the last seal before the one in doubt.
    """
    events, is_known, details = 0, has_known_shape(connection), Details()
    with closing(_runs(connection, part)) as runs:
        for run in runs:
            whole = count_whole(connection, run, details) if is_known else 0
            for seal, _ in run[:whole]:
                if chain.check(seal):
                    return Span(events=events, doubt=seal.number)
                events += seal.count
            if whole < len(run):
                return Span(events=events, doubt=run[whole][0].number)
    return Span(events=events)


def _runs(connection: Connection, part: Part) -> Generator[list[tuple[Seal, bytes]]]:
    """Consecutive seals whose transactions follow on each other, as many as one statement reads."""
    run: list[tuple[Seal, bytes]] = []
    events = 0
    with closing(read_seals(connection, part)) as rows:
        for row in rows:
            seal = read_seal(row)
            if run:
                last = run[-1][0]
                follows = (seal.era, seal.lo) == (last.era, last.hi)
                if not follows or events + seal.count > MOST_EVENTS or len(run) == MOST_SEALS:
                    yield run
                    run, events = [], 0
            run.append((seal, bytes(row.marks)))
            events += seal.count
    if run:
        yield run


def count_whole(connection: Connection, run: Sequence[tuple[Seal, bytes]], details: Details) -> int:
    """How many of these seals, from the first on, hold exactly the events that they sealed.

    Nothing that a row says of itself is believed: each digest is computed from the fields, each
    leaf from the digest and the place, the root from the leaves. The stored digest must equal the
    computed one as well, and so must the marks.
    """
    first, last = run[0][0], run[-1][0]
    statement = copy_statement(era=first.era, lo=first.lo, hi=last.hi)
    whole = 0
    with LeafReader(connection.pgconn, statement, first.era, details) as events:
        for seal, marks in run:
            if not _is_whole(seal, marks, events):
                return max(whole - 1, 0)  # an event too many may lie in the seal before
            whole += 1
        return whole - events.has_more()


def _is_whole(seal: Seal, marks: bytes, events: LeafReader) -> bool:
    if len(marks) != seal.count * MARK.size:
        return False
    tree, at = Tree(), 0
    while at < seal.count:
        wanted = min(CHUNK, seal.count - at)
        try:
            seqs, leaves = events.take(wanted)
        except DoubtfulEvent:
            return False
        sealed = marks[at * MARK.size : (at + wanted) * MARK.size]
        if b"".join(map(MARK.pack, seqs, leaves)) != sealed:
            return False
        tree.extend(leaves)
        at += wanted
    return tree.root() == seal.root
