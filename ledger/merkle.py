"""Merkle trees as in RFC 6962, section 2.1: roots, inclusion proofs, and their check; pure."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

EMPTY = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Hash a leaf; the first byte keeps leaves and nodes apart."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into their parent."""
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """A root that grows leaf by leaf and keeps only the perfect subtrees: log2(n) hashes."""

    __slots__ = ("_peaks", "size")

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._peaks: list[bytes] = []
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: bytes) -> None:
        """Append one leaf, given as its `leaf_hash`."""
        carry, merges = leaf, self.size
        while merges & 1:
            carry = node_hash(self._peaks.pop(), carry)
            merges >>= 1
        self._peaks.append(carry)
        self.size += 1

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Append many leaves: as `add` of each, with less work for each."""
        start = 0
        while start < len(leaves):
            width = 1 << (len(leaves) - start).bit_length() - 1
            if self.size:
                width = min(width, self.size & -self.size)  # a subtree begins where one can
            carry, merges = _top(leaves[start : start + width]), self.size // width
            while merges & 1:
                carry = node_hash(self._peaks.pop(), carry)
                merges >>= 1
            self._peaks.append(carry)
            self.size += width
            start += width

    def root(self) -> bytes:
        """Return the root of the leaves so far."""
        if not self._peaks:
            return EMPTY
        *rest, root = self._peaks
        for peak in reversed(rest):
            root = node_hash(peak, root)
        return root


def _top(leaves: Sequence[bytes]) -> bytes:
    """The root of a perfect subtree: of 1, 2, 4, 8 … leaves."""
    level = leaves
    while len(level) > 1:
        each = iter(level)
        level = [
            sha256(b"\x01" + left + right).digest() for left, right in zip(each, each, strict=True)
        ]
    return level[0]


def root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes."""
    return Tree(leaves).root()


def levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return the tree level by level, leaves first; a node without a sibling rises unchanged."""
    tree = [list(leaves)]
    while len(tree[-1]) > 1:
        below = tree[-1]
        above = [node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        if len(below) % 2:
            above.append(below[-1])
        tree.append(above)
    return tree


def proof(tree: Sequence[Sequence[bytes]], index: int) -> list[bytes]:
    """Return the siblings that lead from leaf `index` of `levels(leaves)` to the root."""
    if not 0 <= index < len(tree[0]):
        raise IndexError(f"no leaf {index} in a tree of {len(tree[0])}")
    path = []
    for level in tree[:-1]:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        index >>= 1
    return path


def proves(*, leaf: bytes, index: int, size: int, path: Sequence[bytes], expected: bytes) -> bool:
    """True if `path` proves that leaf `index` of `size` belongs to the root `expected`."""
    if not 0 <= index < size:
        return False
    last, steps, found = size - 1, iter(path), leaf
    while last:
        if index & 1 or index < last:
            sibling = next(steps, None)
            if sibling is None:
                return False
            found = node_hash(sibling, found) if index & 1 else node_hash(found, sibling)
        index, last = index >> 1, last >> 1
    return next(steps, None) is None and found == expected
