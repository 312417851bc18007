"""Merkle trees against RFC 6962's own recursive definition and its published vectors."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.merkle import EMPTY, Tree, leaf_hash, levels, node_hash, proof, proves, root

leaf_lists = st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=70)


def by_definition(leaves: list[bytes]) -> bytes:
    if not leaves:
        return EMPTY
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(by_definition(leaves[:split]), by_definition(leaves[split:]))


# The test data of Google's certificate-transparency, tree sizes 1 to 8.
VECTOR_LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
VECTOR_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


class TestRoot:
    def test_of_nothing_is_the_hash_of_nothing(self):
        assert root([]) == sha256(b"").digest()

    @pytest.mark.parametrize("size", range(1, 9))
    def test_is_that_of_the_published_vectors(self, size):
        leaves = [leaf_hash(bytes.fromhex(data)) for data in VECTOR_LEAVES[:size]]
        assert root(leaves).hex() == VECTOR_ROOTS[size - 1]

    @given(leaf_lists)
    def test_is_that_of_the_definition(self, leaves):
        assert root(leaves) == by_definition(leaves) == levels(leaves)[-1][0]

    @given(leaf_lists, st.data())
    def test_changes_with_any_leaf(self, leaves, data):
        place = data.draw(st.integers(0, len(leaves) - 1))
        changed = [*leaves[:place], bytes(b ^ 1 for b in leaves[place]), *leaves[place + 1 :]]
        assert root(changed) != root(leaves)

    @given(leaf_lists, st.data())
    def test_changes_with_any_cut(self, leaves, data):
        place = data.draw(st.integers(0, len(leaves) - 1))
        assert root(leaves[:place] + leaves[place + 1 :]) != root(leaves)

    def test_keeps_leaves_and_nodes_apart(self):
        left, right = leaf_hash(b"a"), leaf_hash(b"b")
        assert leaf_hash(left + right) != node_hash(left, right)

    def test_keeps_no_more_than_the_logarithm(self):
        tree = Tree(leaf_hash(bytes([i])) for i in range(200))
        assert len(tree._peaks) == (200).bit_count()
        assert tree.size == 200


class TestProof:
    @given(leaf_lists, st.data())
    def test_proves_its_leaf(self, leaves, data):
        index = data.draw(st.integers(0, len(leaves) - 1))
        path = proof(levels(leaves), index)
        assert proves(
            leaf=leaves[index], index=index, size=len(leaves), path=path, expected=root(leaves)
        )

    @pytest.mark.parametrize("size", range(1, 20))
    def test_proves_nothing_else(self, size):
        leaves = [leaf_hash(bytes([i])) for i in range(size)]
        whole, tree = root(leaves), levels(leaves)
        for index in range(size):
            path = proof(tree, index)
            for other in range(size):
                for leaf in range(size):
                    true = other == index and leaf == index
                    found = proves(
                        leaf=leaves[leaf], index=other, size=size, path=path, expected=whole
                    )
                    assert found is true

    @given(leaf_lists, st.data())
    def test_fails_when_anything_is_changed(self, leaves, data):
        index = data.draw(st.integers(0, len(leaves) - 1))
        path, whole = proof(levels(leaves), index), root(leaves)
        facts = {"leaf": leaves[index], "index": index, "size": len(leaves), "expected": whole}
        flipped = bytes(b ^ 1 for b in leaves[index])
        assert not proves(**facts | {"leaf": flipped}, path=path)
        assert not proves(**facts | {"expected": flipped}, path=path)
        assert not proves(**facts | {"index": len(leaves)}, path=path)
        assert not proves(**facts | {"index": -1}, path=path)
        assert not proves(**facts, path=[*path, flipped])
        if path:
            assert not proves(**facts, path=path[:-1])
            step = data.draw(st.integers(0, len(path) - 1))
            wrong = [*path[:step], flipped, *path[step + 1 :]]
            assert wrong == path or not proves(**facts, path=wrong)

    def test_of_a_leaf_that_is_not_there_is_an_error(self):
        with pytest.raises(IndexError):
            proof(levels([leaf_hash(b"")]), 1)
        with pytest.raises(IndexError):
            proof(levels([leaf_hash(b"")]), -1)


class TestExtend:
    @given(st.lists(leaf_lists, max_size=6))
    def test_is_adding_one_after_the_other(self, parts):
        tree = Tree()
        for part in parts:
            tree.extend(part)
        leaves = [leaf for part in parts for leaf in part]
        assert (tree.root(), tree.size) == (root(leaves), len(leaves))
