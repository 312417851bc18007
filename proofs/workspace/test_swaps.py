"""1,000,000 reads of an agent's file against a process that swaps folders for links: none leaks."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from documents import tree as trees
from documents.tree import Missing, SafeTree, Unsafe

READS = 1_000_000


@pytest.fixture
def swapper(tmp_path):
    """A process that swaps the folder `home/d`, all the time, for a link to a folder outside."""
    outside, home = tmp_path / "outside", tmp_path / "home"
    for place, text in [(outside, "SECRET"), (home / "d", "mine")]:
        (place / "e").mkdir(parents=True)
        (place / "e/a.py").write_text(text)
    (home / "t").symlink_to(outside)
    pid = os.fork()
    if pid == 0:
        os.chdir(home)
        while True:
            Path("d").rename("aside")
            Path("t").rename("d")
            Path("d").rename("t")
            Path("aside").rename("d")
    try:
        yield SafeTree(home)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def seen(tree: SafeTree) -> str:
    try:
        return tree.read("d/e/a.py").decode()
    except Missing:
        return "missing"
    except Unsafe:
        return "refused"


@pytest.mark.parametrize("way", ["openat2", "part by part"])
class TestSwaps:
    def test_leak_nothing_in_a_million_reads(self, swapper, way, monkeypatch):
        if way == "part by part":
            monkeypatch.setattr(trees, "openat2_offered", lambda: False)
        elif not trees.openat2_offered():
            pytest.skip("this kernel has no openat2")
        found = Counter(seen(swapper) for _ in range(READS // 2))
        print(way, dict(found))
        assert found["SECRET"] == 0
        assert min(found["mine"], found["refused"], found["missing"]) > 1000

    def test_would_be_seen_by_a_careless_reader(self, swapper, way):
        """The race is real: who resolves a path and then opens it does leak."""

        def careless() -> str:
            try:
                path = (swapper.root / "d/e/a.py").resolve()
                if not path.is_relative_to(swapper.root):
                    return "refused"
                return (swapper.root / "d/e/a.py").read_text()
            except OSError:
                return "missing"

        assert Counter(careless() for _ in range(20_000))["SECRET"] > 0
