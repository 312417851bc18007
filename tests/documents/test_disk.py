"""A company tree whose disk hangs: who comes then is told so at once."""

import errno

import pytest

from documents import disk, root
from documents.tree import SafeTree
from tests.disks import hanging


@pytest.fixture
def tree(settings, tmp_path, monkeypatch):
    """The tree of an installation that has been started."""
    settings.NEXUS_VAR, settings.WORKSPACE_ROOT = tmp_path, tmp_path / "company"
    monkeypatch.setattr(disk, "PATIENCE", 0.0)
    root.know_root()
    yield settings.WORKSPACE_ROOT
    root._known.cache_clear()


ASKED = {
    "the root": lambda tree: root.root(),
    "a file": lambda tree: SafeTree(tree).read("a.md"),
    "a folder": lambda tree: SafeTree(tree).entries(),
    "a new file": lambda tree: SafeTree(tree).write("b.md", b"b"),
}


class TestADiskThatHangs:
    @pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
    def test_is_told(self, tree, ask):
        SafeTree(tree).write("a.md", b"a")
        with hanging(tree), pytest.raises(OSError, match="does not answer") as refusal:
            ask(tree)
        assert refusal.value.errno == errno.ETIMEDOUT
        ask(tree)

    def test_is_waited_for_while_it_moves_on(self, tree, monkeypatch):
        """As a disk that is only slow."""
        with hanging(tree):
            monkeypatch.setattr(disk, "PATIENCE", 60.0)
            assert not disk.PLACES._hang()

    def test_leaves_threads_to_all_others(self, settings):
        """Half of them are for what else waits (Spec: hands 17)."""
        assert disk.PLACES.most == settings.WEB_THREADS // 4 == 2
