"""Is this chain of seals and events whole? The same pure checks for a database and an export."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from core.events import UnrecordableEvent
from core.terminal import printable
from ledger.canonical import digest_fields
from ledger.merkle import Tree
from ledger.seal_format import GENESIS, Leaf, Seal, place_hash, read_marks, verifies

Keys = Mapping[str, bytes]  # key id -> raw public key
TRUST = "If it was ours, trust its public key: docs/ledger.md says where it is kept"


class SealFault(StrEnum):
    """What can be wrong, by what was changed."""

    EVENT_FIELDS = "event_fields"
    EVENT_DIGEST = "event_digest"
    EVENT_REWRITTEN = "event_rewritten"
    EVENT_MISSING = "event_missing"
    EVENT_INSERTED = "event_inserted"
    EVENT_UNSEALED = "event_unsealed"
    SEAL_MISSING = "seal_missing"
    SEAL_FIELDS = "seal_fields"
    SEAL_KEY = "seal_key"
    SEAL_SIGNATURE = "seal_signature"
    SEAL_CHAIN = "seal_chain"
    SEAL_RANGE = "seal_range"
    SEAL_MARKS = "seal_marks"
    SEAL_ROOT = "seal_root"
    SEAL_HEAD = "seal_head"
    INDEX = "index"
    GUARD = "guard"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first thing wrong and where it is."""

    fault: SealFault
    message: str
    seal: int | None = None
    seq: int | None = None

    def __str__(self) -> str:
        place = [f"seal {self.seal}"] if self.seal is not None else []
        place += [f"event {self.seq}"] if self.seq is not None else []
        return printable(f"{', '.join(place) or 'ledger'}: {self.message} [{self.fault}]")


class Chain:
    """Follows seals in order of number and says what is wrong with the next one."""

    def __init__(
        self,
        keys: Keys,
        *,
        first: int = 1,
        last: Seal | None = None,
        reached: Mapping[int, int] | None = None,
    ) -> None:
        """Begin with the seal `first`, or go on behind `last`.

        `reached` says then up to which transaction each era is sealed.
        """
        self.keys = keys
        self.first = first
        self.last = last
        self._reached = dict(reached or {})

    def check(self, seal: Seal) -> Finding | None:
        """Check number, statement, key, signature, link and range of the next seal."""
        finding = self._number(seal) or self._statement(seal) or self._place(seal)
        if finding is None:
            self.last = seal
            self._reached[seal.era] = seal.hi
        return finding

    def _number(self, seal: Seal) -> Finding | None:
        expected = self.last.number + 1 if self.last else self.first
        if seal.number == expected:
            return None
        return Finding(
            fault=SealFault.SEAL_MISSING,
            seal=expected,
            message=f"this seal is missing; the next one found is {seal.number}",
        )

    def _statement(self, seal: Seal) -> Finding | None:
        fault: SealFault | None = None
        message = ""
        public = self.keys.get(seal.key_id)
        if not _says_what_it_said(seal):
            fault, message = SealFault.SEAL_FIELDS, "its fields do not match its digest"
        elif public is None:
            fault = SealFault.SEAL_KEY
            message = f"signed by key {seal.key_id}, not trusted here. {TRUST}"
        elif not verifies(public, seal.signature, seal.digest):
            fault, message = SealFault.SEAL_SIGNATURE, f"its signature is not by key {seal.key_id}"
        return Finding(fault=fault, seal=seal.number, message=message) if fault else None

    def _place(self, seal: Seal) -> Finding | None:
        fault: SealFault | None = None
        message = ""
        previous = self.last.digest if self.last else GENESIS if self.first == 1 else seal.previous
        reached = self._reached.get(seal.era, 0 if self.first == 1 else seal.lo)
        if seal.previous != previous:
            fault, message = SealFault.SEAL_CHAIN, "it is not chained to the seal before it"
        elif seal.lo != reached or seal.hi <= seal.lo:
            fault = SealFault.SEAL_RANGE
            message = f"its transactions {seal.lo}..{seal.hi} do not follow on {reached}"
        return Finding(fault=fault, seal=seal.number, message=message) if fault else None


def _says_what_it_said(seal: Seal) -> bool:
    try:
        return seal.compute_digest() == seal.digest
    except UnrecordableEvent:
        return False


class Leaves:
    """Follows the events of one seal, ordered by (xid, seq), against what was sealed."""

    def __init__(self, seal: Seal, marks: bytes | None = None) -> None:
        self.seal = seal
        self._tree = Tree()
        self._marks = None if marks is None else list(read_marks(marks))
        self._sealed = frozenset(seq for seq, _ in self._marks or ())
        self._genuine = marks is None or sha256(marks).digest() == seal.marks

    def open(self) -> Finding | None:
        """Check the seal's own list of marks before it is used to find anything."""
        if self._genuine:
            return None
        return self._finding(SealFault.SEAL_MARKS, "its list of marks was changed")

    def add(self, leaf: Leaf) -> Finding | None:
        """Check the next event."""
        place = leaf.hash()
        finding = self._expected(leaf) or self._content(leaf, place)
        if finding is None:
            self._tree.add(place)
        return finding

    def close(self) -> Finding | None:
        """Check that nothing is left out and that the root is the sealed one."""
        if self._marks is not None and self._tree.size < len(self._marks):
            seq = self._marks[self._tree.size][0]
            return self._finding(SealFault.EVENT_MISSING, "this sealed event is gone", seq)
        if self._tree.size != self.seal.count:
            message = f"it sealed {self.seal.count} events, {self._tree.size} are here"
            return self._finding(SealFault.EVENT_MISSING, message)
        if self._tree.root() != self.seal.root:
            return self._finding(SealFault.SEAL_ROOT, "its events do not add up to its root")
        return None

    def _expected(self, leaf: Leaf) -> Finding | None:
        if self._marks is None:
            return None
        place = self._tree.size
        if place < len(self._marks) and self._marks[place][0] == leaf.seq:
            return None
        if leaf.seq not in self._sealed:
            message = "this event was inserted behind the seal"
            return self._finding(SealFault.EVENT_INSERTED, message, leaf.seq)
        missing = self._marks[place][0] if place < len(self._marks) else leaf.seq
        return self._finding(
            SealFault.EVENT_MISSING, "this sealed event is gone from here", missing
        )

    def _content(self, leaf: Leaf, place: bytes) -> Finding | None:
        own = digest_fields(leaf.fields)
        if self._marks is None:
            return check_event(leaf, own, seal=self.seal.number)
        sealed = self._marks[self._tree.size][1]
        is_unmoved = place[:8] == sealed
        if own == leaf.digest and is_unmoved:
            return None
        if own == leaf.digest:
            message = "it was rewritten or moved and its digest made anew"
            return self._finding(SealFault.EVENT_REWRITTEN, message, leaf.seq)
        if place_hash(leaf.era, leaf.xid, leaf.seq, own)[:8] == sealed:
            message = "its digest was changed; its fields are as sealed"
            return self._finding(SealFault.EVENT_DIGEST, message, leaf.seq)
        message = "its fields were changed" + ("" if is_unmoved else ", its digest too")
        return self._finding(SealFault.EVENT_FIELDS, message, leaf.seq)

    def _finding(self, fault: SealFault, message: str, seq: int | None = None) -> Finding:
        return Finding(fault=fault, message=message, seal=self.seal.number, seq=seq)


def check_event(leaf: Leaf, own: bytes | None = None, *, seal: int | None = None) -> Finding | None:
    """Check an event against its stored digest: all there is to check before it is sealed."""
    if (own or digest_fields(leaf.fields)) == leaf.digest:
        return None
    return Finding(
        fault=SealFault.EVENT_FIELDS,
        message="its fields do not match its digest",
        seal=seal,
        seq=leaf.seq,
    )
