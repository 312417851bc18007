"""A seal: a signed Merkle root over a range of transactions, chained to the one before; pure."""

import base64
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ledger.canonical import JSON, canonical, stamp
from ledger.merkle import leaf_hash

DOMAIN = b"nexus.ledger.seal.v1\x00"
SIGNED = b"nexus.ledger.signature.v1\x00"
GENESIS = bytes(32)  # what the first seal names as the one before

Binary = bytes | memoryview

PLACE = struct.Struct(">qqq")
MARK = struct.Struct(">q8s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One sealed event: its place, its stored digest, and its fields as they are now."""

    era: int
    xid: int
    seq: int
    digest: bytes
    fields: Mapping[str, JSON]

    def hash(self) -> bytes:
        """Return the Merkle leaf: place and digest, so that an event cannot move either."""
        return place_hash(self.era, self.xid, self.seq, self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A signed statement: these are the events of the transactions `lo <= xid < hi` of an era.

    An era is one database cluster, named by its system identifier: transaction numbers have an
    order only inside it. `marks` is the digest of the list of marks, which finds what changed.
    """

    number: int
    era: int
    lo: int
    hi: int
    count: int
    root: bytes
    marks: bytes
    previous: bytes
    at: datetime
    key_id: str
    digest: bytes = b""
    signature: bytes = b""

    def statement(self) -> dict[str, JSON]:
        """Return what is signed, as JSON values."""
        return {
            "number": self.number,
            "era": self.era,
            "lo": self.lo,
            "hi": self.hi,
            "count": self.count,
            "root": self.root.hex(),
            "marks": self.marks.hex(),
            "previous": self.previous.hex(),
            "at": stamp(self.at),
            "key_id": self.key_id,
        }

    def compute_digest(self) -> bytes:
        """Return the SHA-256 over the statement; raises UnrecordableEvent."""
        return sha256(DOMAIN + canonical(self.statement()).encode()).digest()


class SealColumns(Protocol):
    """A stored seal: a row of the table, read by Django or by psycopg."""

    number: int
    era: int
    lo: int
    hi: int
    count: int
    root: Binary
    marks: Binary
    previous: Binary
    at: datetime
    key_id: str
    digest: Binary
    signature: Binary


def read_seal(row: SealColumns) -> Seal:
    """Return a stored seal as the value that is checked."""
    return Seal(
        number=row.number,
        era=row.era,
        lo=row.lo,
        hi=row.hi,
        count=row.count,
        root=bytes(row.root),
        marks=sha256(row.marks).digest(),
        previous=bytes(row.previous),
        at=row.at,
        key_id=row.key_id,
        digest=bytes(row.digest),
        signature=bytes(row.signature),
    )


def place_hash(era: int, xid: int, seq: int, digest: bytes) -> bytes:
    """Return the Merkle leaf of an event with this digest at this place."""
    return leaf_hash(PLACE.pack(era, xid, seq) + digest)


def mark(seq: int, leaf: bytes) -> bytes:
    """Return the 16 bytes a seal keeps of a leaf: enough to find it again, no proof itself."""
    return MARK.pack(seq, leaf[:8])


def read_marks(marks: bytes) -> Iterator[tuple[int, bytes]]:
    """Return (seq, first 8 bytes of the leaf) in the order of the leaves."""
    return MARK.iter_unpack(marks)


def key_id(public: bytes) -> str:
    """Return the short name of a raw public key."""
    return sha256(public).hexdigest()[:16]


def index_keys(publics: Iterable[bytes]) -> dict[str, bytes]:
    """Return raw public keys by their short names."""
    return {key_id(public): public for public in publics}


def read_public(line: str) -> bytes:
    """Read a raw public key from base64; raises ValueError."""
    public = base64.b64decode(line.strip(), validate=True)
    if len(public) != 32:
        raise ValueError("an Ed25519 public key has 32 bytes")
    return public


def write_public(public: bytes) -> str:
    """Return a raw public key as one line of base64."""
    return base64.b64encode(public).decode()


def verifies(public: bytes, signature: bytes, digest: bytes) -> bool:
    """Say whether `signature` over `digest` was made by this raw public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, SIGNED + digest)
    except (InvalidSignature, ValueError):
        return False
    return True
