"""A small ledger with seals, read once, and what a superuser does to it inside a transaction."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from django.db import connection, transaction

from ledger import keys
from ledger.canonical import FIELDS, digest_fields
from ledger.guards import check_guards
from ledger.merkle import root
from ledger.models import Seal as SealRow
from ledger.rules import Finding, SealFault
from ledger.seal_format import Leaf, Seal, mark, read_seal
from ledger.verification import COLUMNS, Verification, read_leaf
from tests.ledger.world import NOW, record_many, seal_until_covered

SEALS = 6
EVENTS = f"SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event ORDER BY xid, seq"
TYPES = {"id": "uuid", "at": "timestamptz", "details": "jsonb"}


@dataclass(frozen=True)
class Place:
    """A sealed event and where it lies."""

    seal: int
    leaf: Leaf

    @property
    def seq(self) -> int:
        return self.leaf.seq


@dataclass(frozen=True)
class World:
    """The whole ledger as it was before anything was done to it."""

    seals: Mapping[int, Seal]
    places: tuple[Place, ...]
    waiting: tuple[Leaf, ...]

    @cached_property
    def by_seal(self) -> dict[int, list[Leaf]]:
        return {n: [p.leaf for p in self.places if p.seal == n] for n in self.seals}


@dataclass(frozen=True)
class Tampering:
    """What is done, and where it must be found; a limit is what nothing can show."""

    family: str
    statements: tuple[str, ...]
    faults: frozenset[SealFault] = frozenset()
    seal: int | None = None
    seqs: frozenset[int | None] = frozenset({None})

    @property
    def is_limit(self) -> bool:
        return not self.faults

    def is_found_by(self, finding: Finding | None) -> bool:
        if finding is None or self.is_limit:
            return finding is None and self.is_limit
        at = finding.seal == self.seal and finding.seq in self.seqs
        return at and finding.fault in self.faults


def make_world() -> World:
    """Seal events of two transactions at a time, and leave some that wait for their seal."""
    for _ in range(SEALS):
        seal_until_covered(record_many(3) + record_many(3))
    record_many(4)
    seals = {row.number: read_seal(row) for row in SealRow.objects.order_by("number")}
    assert len(seals) == SEALS
    with connection.cursor() as cursor:
        cursor.execute(EVENTS)
        leaves = [read_leaf(row) for row in cursor.fetchall()]
    places, waiting = [], []
    for leaf in leaves:
        covering = [n for n, seal in seals.items() if seal.lo <= leaf.xid < seal.hi]
        if covering:
            places.append(Place(covering[0], leaf))
        else:
            waiting.append(leaf)
    assert (len(places), len(waiting)) == (SEALS * 6, 4)
    return World(seals, tuple(places), tuple(waiting))


def literal(value: object, kind: str = "") -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"'\\x{value.hex()}'"
        case str():
            quoted = value.replace("'", "''")
            return f"'{quoted}'" + (f"::{kind}" if kind else "")
        case _:
            return str(value)


def edit(seq: int, values: Mapping[str, object]) -> str:
    """Set columns of an event; `is_done` tells whether anything changed."""
    sets = ", ".join(f"{k} = {literal(v, TYPES.get(k, ''))}" for k, v in values.items())
    return f"UPDATE ledger_event SET {sets} WHERE seq = {seq}"


def edit_seal(number: int, values: Mapping[str, object]) -> str:
    kinds = {"at": "timestamptz"}
    sets = ", ".join(f"{k} = {literal(v, kinds.get(k, ''))}" for k, v in values.items())
    return f"UPDATE ledger_seal SET {sets} WHERE number = {number}"


def redigested(leaf: Leaf, values: Mapping[str, object]) -> Leaf:
    """The event with other fields and the digest of what it says now."""
    fields = {name: leaf.fields[name] for name in FIELDS} | dict(values)
    return replace(leaf, fields=fields, digest=digest_fields(fields))


def resealed(seal: Seal, leaves: list[Leaf], **changes: object) -> tuple[Seal, bytes]:
    """The seal over these leaves, with the digest of what it says now; its marks."""
    marks = b"".join(mark(leaf.seq, leaf.hash()) for leaf in leaves)
    hashes = [leaf.hash() for leaf in leaves]
    fresh = replace(
        seal, root=root(hashes), marks=sha256(marks).digest(), count=len(leaves), **changes
    )
    return replace(fresh, digest=fresh.compute_digest()), marks


def write_seal(seal: Seal, marks: bytes, signer: keys.Signer | None = None) -> str:
    """Store a seal that was made again, signed by this key or with the old signature."""
    values: dict[str, object] = {
        name: getattr(seal, name) for name in ("root", "count", "previous", "key_id", "digest")
    }
    values["marks"] = marks
    if signer:
        values["signature"] = signer.sign(seal.digest)
    return edit_seal(seal.number, values)


@contextmanager
def tampered(statements: tuple[str, ...]) -> Iterator[None]:
    """Do what a superuser does, where no trigger is asked, and take it back afterwards."""
    point = transaction.savepoint()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in statements:
                cursor.execute(statement)
                assert cursor.rowcount != 0, f"nothing was done by {statement}"
            cursor.execute("SET LOCAL session_replication_role = origin")
        yield
    finally:
        transaction.savepoint_rollback(point)


def look(trusted: Mapping[str, bytes]) -> Finding | None:
    """What `ledger verify` does, in the transaction that holds the tampering."""
    with transaction.atomic():
        return Verification(trusted, NOW).run().finding or check_guards()
