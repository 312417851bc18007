"""Pure checks of a chain built in memory: every single change of it is found at its place."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canonical import digest_fields, fields
from ledger.merkle import root
from ledger.rules import Chain, Finding, Leaves, SealFault, check_event
from ledger.seal_format import (
    GENESIS,
    SIGNED,
    Leaf,
    Seal,
    index_keys,
    key_id,
    mark,
    read_marks,
    verifies,
)
from tests.ledger.world import NOW, make_event

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
PUBLIC = KEY.public_key().public_bytes_raw()
KEYS = index_keys([PUBLIC])


class Sealed(NamedTuple):
    seal: Seal
    marks: bytes
    leaves: list[Leaf]


def sign(seal: Seal) -> Seal:
    digest = seal.compute_digest()
    return replace(seal, digest=digest, signature=KEY.sign(SIGNED + digest))


def build(sizes: list[int], *, eras: list[int] | None = None) -> list[Sealed]:
    """Build a whole chain: seal n covers sizes[n] events, two to a transaction."""
    chain: list[Sealed] = []
    reached: dict[int, int] = {}
    seq, previous = 1, GENESIS
    for number, size in enumerate(sizes, 1):
        era = eras[number - 1] if eras else 1
        lo = reached.get(era, 0)
        leaves = []
        for i in range(size):
            values = fields(make_event(id=UUID(int=seq), at=NOW + timedelta(seconds=seq)))
            leaf = Leaf(
                era=era, xid=lo + 1 + i // 2, seq=seq, digest=digest_fields(values), fields=values
            )
            leaves.append(leaf)
            seq += 1
        marks = b"".join(mark(leaf.seq, leaf.hash()) for leaf in leaves)
        reached[era] = lo + 2 + size
        seal = sign(
            Seal(
                number=number,
                era=era,
                lo=lo,
                hi=reached[era],
                count=size,
                root=root(leaf.hash() for leaf in leaves),
                marks=sha256(marks).digest(),
                previous=previous,
                at=datetime(2026, 11, 21, tzinfo=UTC),
                key_id=key_id(PUBLIC),
            )
        )
        previous = seal.digest
        chain.append(Sealed(seal, marks, leaves))
    return chain


def check(chain: list[Sealed], *, with_marks: bool = True, first: int = 1) -> Finding | None:
    links = Chain(KEYS, first=first)
    for seal, marks, leaves in chain:
        follower = Leaves(seal, marks if with_marks else None)
        finding = links.check(seal) or follower.open()
        for leaf in leaves:
            finding = finding or follower.add(leaf)
        finding = finding or follower.close()
        if finding:
            return finding
    return None


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=5)


class TestWholeChain:
    @given(sizes, st.booleans())
    def test_stands(self, sizes, with_marks):
        assert check(build(sizes), with_marks=with_marks) is None

    @given(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=6))
    def test_stands_across_eras(self, eras):
        assert check(build([2] * len(eras), eras=eras)) is None

    @given(sizes, st.data())
    def test_stands_from_any_seal_on(self, sizes, data):
        first = data.draw(st.integers(1, len(sizes)))
        assert check(build(sizes)[first - 1 :], first=first) is None


class TestOneChange:
    """Whatever single thing changes, it is found in its seal, and the event is named."""

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_of_a_field_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = chain[number].leaves[place]
        changed = replace(leaf, fields=dict(leaf.fields) | {"reason": "another"})
        chain[number].leaves[place] = changed
        assert_found(check(chain), SealFault.EVENT_FIELDS, number, leaf)
        assert_found(check(chain, with_marks=False), SealFault.EVENT_FIELDS, number, leaf)

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_of_fields_and_digest_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = chain[number].leaves[place]
        values = dict(leaf.fields) | {"reason": "another"}
        chain[number].leaves[place] = replace(leaf, fields=values, digest=digest_fields(values))
        assert_found(check(chain), SealFault.EVENT_REWRITTEN, number, leaf)
        assert check(chain, with_marks=False).fault == SealFault.SEAL_ROOT

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_of_fields_and_digest_apart_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = chain[number].leaves[place]
        values = dict(leaf.fields) | {"reason": "another"}
        chain[number].leaves[place] = replace(leaf, fields=values, digest=bytes(32))
        assert_found(check(chain), SealFault.EVENT_FIELDS, number, leaf)

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_of_a_digest_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = chain[number].leaves[place]
        chain[number].leaves[place] = replace(leaf, digest=bytes(32))
        assert_found(check(chain), SealFault.EVENT_DIGEST, number, leaf)

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_by_taking_an_event_out_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = chain[number].leaves.pop(place)
        assert_found(check(chain), SealFault.EVENT_MISSING, number, leaf)
        found = check(chain, with_marks=False)
        assert (found.fault, found.seal) == (SealFault.EVENT_MISSING, number + 1)

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_by_putting_an_event_in_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = replace(chain[number].leaves[place], seq=999)
        chain[number].leaves.insert(place, leaf)
        assert_found(check(chain), SealFault.EVENT_INSERTED, number, leaf)
        assert check(chain, with_marks=False) is not None

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_by_moving_an_event_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaf = chain[number].leaves[place]
        for moved in (replace(leaf, xid=leaf.xid + 1), replace(leaf, era=leaf.era + 1)):
            chain[number].leaves[place] = moved
            assert_found(check(chain), SealFault.EVENT_REWRITTEN, number, leaf)

    @settings(max_examples=60)
    @given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.data())
    def test_by_swapping_events_is_found(self, sizes, data):
        chain, number, place = pick(sizes, data)
        leaves = chain[number].leaves
        other = (place + 1) % len(leaves)
        leaves[place], leaves[other] = leaves[other], leaves[place]
        assert check(chain).seal == number + 1
        assert check(chain, with_marks=False).fault == SealFault.SEAL_ROOT

    @settings(max_examples=60)
    @given(sizes, st.data())
    def test_by_taking_a_seal_out_is_found(self, sizes, data):
        chain, number, _ = pick([*sizes, 1], data)
        if number == len(chain) - 1:
            return
        del chain[number]
        assert_found(check(chain), SealFault.SEAL_MISSING, number)

    @pytest.mark.parametrize(
        "changes",
        [
            {"at": NOW + timedelta(days=1)},
            {"era": 2},
            {"lo": 1},
            {"hi": 1000},
            {"count": 9},
            {"root": bytes(32)},
            {"marks": bytes(32)},
            {"previous": b"x" * 32},
            {"key_id": "x"},
            {"digest": bytes(32)},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_of_a_seal_s_field_is_found(self, changes):
        chain = build([2, 2, 2])
        chain[1] = chain[1]._replace(seal=replace(chain[1].seal, **changes))
        assert_found(check(chain), SealFault.SEAL_FIELDS, 1)

    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({"previous": bytes(32)}, SealFault.SEAL_CHAIN),
            ({"lo": 1}, SealFault.SEAL_RANGE),
            ({"lo": 7}, SealFault.SEAL_RANGE),
            ({"hi": 4}, SealFault.SEAL_RANGE),
            ({"era": 2}, SealFault.SEAL_RANGE),
            ({"count": 1}, SealFault.EVENT_MISSING),
            ({"root": bytes(32)}, SealFault.SEAL_ROOT),
            ({"marks": bytes(32)}, SealFault.SEAL_MARKS),
        ],
        ids=str,
    )
    def test_of_a_seal_s_field_is_found_even_if_signed_again(self, changes, fault):
        """The signature is not the only thing that is checked."""
        chain = build([2, 2, 2])
        chain[1] = chain[1]._replace(seal=sign(replace(chain[1].seal, **changes)))
        assert_found(check(chain), fault, 1)

    def test_of_the_key_is_found(self):
        chain = build([2, 2])
        seal = chain[0].seal
        other = Ed25519PrivateKey.generate()
        forged = replace(seal, signature=other.sign(SIGNED + seal.digest))
        assert_found(check([chain[0]._replace(seal=forged)]), SealFault.SEAL_SIGNATURE, 0)
        named = sign(replace(seal, key_id=key_id(other.public_key().public_bytes_raw())))
        assert_found(check([chain[0]._replace(seal=named)]), SealFault.SEAL_KEY, 0)

    def test_of_the_first_seals_link_is_found(self):
        chain = build([2])
        seal = sign(replace(chain[0].seal, previous=b"x" * 32))
        assert_found(check([chain[0]._replace(seal=seal)]), SealFault.SEAL_CHAIN, 0)


def pick(sizes: list[int], data) -> tuple[list[Sealed], int, int]:
    chain = build(sizes)
    number = data.draw(st.integers(0, len(chain) - 1))
    return chain, number, data.draw(st.integers(0, len(chain[number].leaves) - 1))


def assert_found(found: Finding | None, fault: SealFault, number: int, leaf: Leaf | None = None):
    assert found is not None, "nothing was found"
    assert (found.fault, found.seal) == (fault, number + 1), str(found)
    assert found.seq == (leaf.seq if leaf else None)


class TestCheckEvent:
    def test_compares_fields_and_digest(self):
        leaf = build([1])[0].leaves[0]
        assert check_event(leaf) is None
        found = check_event(replace(leaf, digest=bytes(32)))
        assert (found.fault, found.seal, found.seq) == (SealFault.EVENT_FIELDS, None, leaf.seq)


class TestFinding:
    def test_says_where_and_what(self):
        found = Finding(fault=SealFault.EVENT_MISSING, message="gone", seal=3, seq=17)
        assert str(found) == "seal 3, event 17: gone [event_missing]"
        assert str(Finding(fault=SealFault.GUARD, message="off")) == "ledger: off [guard]"


class TestMarks:
    @given(st.lists(st.tuples(st.integers(1, 2**63 - 1), st.binary(min_size=32, max_size=32))))
    def test_are_read_as_written(self, leaves):
        marks = b"".join(mark(seq, leaf) for seq, leaf in leaves)
        assert list(read_marks(marks)) == [(seq, leaf[:8]) for seq, leaf in leaves]


class TestSignature:
    def test_of_a_seal_is_none_of_a_bare_digest(self):
        """Domains: a signature made for something else never fits a seal."""
        digest = build([1])[0].seal.digest
        assert not verifies(PUBLIC, KEY.sign(digest), digest)
        assert verifies(PUBLIC, KEY.sign(SIGNED + digest), digest)
