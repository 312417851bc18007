"""The tree against whoever can change the folders below its root."""

import ctypes
import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from documents import tree as module
from documents.tree import Missing, SafeTree, TooLarge, TreeEntry, Unsafe

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


exchange = ctypes.CDLL(None, use_errno=True).renameat2


@pytest.fixture(params=["openat2", "walking"])
def way(request, monkeypatch):
    """Both ways into a folder: the kernel's one call, and part by part."""
    if request.param == "walking":
        monkeypatch.setattr(module, "openat2_offered", lambda: False)
    elif not module.openat2_offered():
        pytest.skip("this kernel does not offer openat2")
    return request.param


@pytest.fixture
def root(tmp_path, way) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    return made


@pytest.fixture
def tree(root) -> SafeTree:
    return SafeTree(root)


@pytest.fixture
def outside(tmp_path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


ACTS = {
    "read": lambda tree: tree.read("a/b.md"),
    "read_end": lambda tree: tree.read_end("a/b.md", limit=9),
    "is_folder": lambda tree: tree.is_folder("a/b.md"),
    "entries": lambda tree: tree.entries("a"),
    "write": lambda tree: tree.write("a/b.md", b"first"),
}


class TestAnotherMachine:
    """Replaces a file or folder while it is open here: the kernel answers ESTALE."""

    @pytest.fixture
    def stale(self, tree, monkeypatch):
        """Lets the first so many looks at the root meet this, and counts them."""
        tree.write("a/b.md", b"first")
        met, looked = [], module._descend

        def replaced(times):
            def look(*given, **named):
                if len(met) < times:
                    met.append(times)
                    raise OSError(errno.ESTALE, "Stale file handle")
                return looked(*given, **named)

            monkeypatch.setattr(module, "_descend", look)
            return met

        return replaced

    @pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
    def test_is_met_by_looking_again(self, tree, stale, act):
        expected = act(tree)
        met = stale(module.TIMES - 1)
        assert act(tree) == expected
        assert len(met) == module.TIMES - 1

    @pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
    def test_that_never_ends_is_a_fault_of_the_disk(self, tree, stale, act):
        met = stale(100)
        with pytest.raises(OSError, match="Stale"):
            act(tree)
        assert len(met) == module.TIMES

    def test_is_not_every_fault(self, tree, monkeypatch):
        looks = []

        def broken(*_, **__):
            looks.append(1)
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(module, "_descend", broken)
        with pytest.raises(OSError, match="Input/output"):
            tree.read("a/b.md")
        assert looks == [1]


class TestWriting:
    def test_makes_folders_and_file_with_closed_modes(self, tree, root):
        tree.write("reports/tech/a.md", b"hello")
        assert tree.read("reports/tech/a.md") == b"hello"
        assert stat.S_IMODE((root / "reports/tech/a.md").stat().st_mode) == 0o640
        assert stat.S_IMODE((root / "reports/tech").stat().st_mode) & 0o027 == 0

    def test_replaces_whole_and_leaves_nothing_behind(self, tree, root):
        tree.write("a/b.md", b"first, and longer")
        tree.write("a/b.md", b"second")
        assert tree.read("a/b.md") == b"second"
        assert names(root / "a") == ["b.md"]

    def test_leaves_the_old_file_when_the_disk_refuses(self, tree, root, monkeypatch):
        tree.write("a/b.md", b"first")

        def full(*_):
            raise OSError(errno.ENOSPC, "no space left")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            tree.write("a/b.md", b"second")
        assert (root / "a/b.md").read_bytes() == b"first"
        assert names(root / "a") == ["b.md"]

    def test_makes_its_root(self, tmp_path, way):
        SafeTree(tmp_path / "new" / "root", "nexus").write("a.md", b"x")
        assert (tmp_path / "new/root/nexus/a.md").read_bytes() == b"x"

    def test_replaces_a_link_and_never_follows_it(self, tree, root, outside):
        (root / "a.md").symlink_to(outside / "secret")
        tree.write("a.md", b"new")
        assert (outside / "secret").read_text() == "secret"
        assert not (root / "a.md").is_symlink()

    def test_never_writes_through_a_hard_link(self, tree, root, outside):
        os.link(outside / "secret", root / "a.md")
        tree.write("a.md", b"new")
        assert (outside / "secret").read_text() == "secret"

    def test_refuses_a_folder_in_the_place_of_the_file(self, tree, root):
        (root / "a.md").mkdir()
        with pytest.raises(Unsafe):
            tree.write("a.md", b"x")

    def test_refuses_a_file_in_the_place_of_a_folder(self, tree):
        tree.write("a", b"x")
        with pytest.raises(Unsafe):
            tree.write("a/b.md", b"x")


BAD_PATHS = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "../outside/secret",
    "a/../../outside/secret",
    "a/./b",
    "a//b",
    "~/x",
    "a\x00b",
    "a\nb",
    "a\\b",
    "x" * 2000,
    "a/" + "y" * 256,
    "a/",
    "e\u0301",
    "a\u202eb",
    "\ud800",
]


class TestPaths:
    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_are_refused_when_they_are_not_plain(self, tree, path):
        with pytest.raises(Unsafe):
            tree.read(path)
        with pytest.raises(Unsafe):
            tree.write(path, b"x")

    def test_of_the_inner_root_are_refused_too(self, root):
        for inside in ("..", "../x", "/etc", "a/../.."):
            with pytest.raises(Unsafe):
                SafeTree(root, inside).read("passwd")


class TestLinks:
    @pytest.mark.parametrize("path", ["link/secret", "a/link/secret", "chain/secret"])
    def test_on_the_way_are_refused(self, tree, root, outside, path):
        (root / "a").mkdir()
        (root / "link").symlink_to(outside)
        (root / "a/link").symlink_to(outside)
        (root / "chain").symlink_to("link")
        with pytest.raises(Unsafe):
            tree.read(path)
        with pytest.raises(Unsafe):
            tree.write(path.replace("secret", "planted"), b"x")
        with pytest.raises(Unsafe):
            tree.entries(path.rpartition("/")[0])
        assert names(outside) == ["secret"]

    def test_at_the_end_are_refused(self, tree, root, outside):
        (root / "x").symlink_to(outside / "secret")
        (root / "y").symlink_to("x")
        (root / "loop").symlink_to("loop")
        for name in ("x", "y", "loop"):
            with pytest.raises(Unsafe):
                tree.read(name)

    def test_within_the_root_are_refused_as_well(self, tree, root):
        tree.write("src/main.py", b"source")
        (root / "tests").symlink_to("src")
        with pytest.raises(Unsafe):
            tree.write("tests/main.py", b"changed through a link")
        assert tree.read("src/main.py") == b"source"

    def test_in_the_place_of_the_inner_root_are_refused(self, root, outside):
        (root / "nexus").symlink_to(outside)
        with pytest.raises(Unsafe):
            SafeTree(root, "nexus").read("secret")
        with pytest.raises(Unsafe):
            SafeTree(root, "nexus").write("planted", b"x")

    def test_to_processes_are_refused(self, tree, root):
        (root / "proc").symlink_to("/proc/self/root")
        with pytest.raises(Unsafe):
            tree.read("proc/etc/passwd")

    def test_of_the_operator_to_the_root_itself_are_followed(self, tmp_path, root):
        (tmp_path / "elsewhere").symlink_to(root)
        SafeTree(tmp_path / "elsewhere").write("a.md", b"x")
        assert (root / "a.md").read_bytes() == b"x"


class TestSpecialFiles:
    def test_that_have_a_second_name_are_refused(self, tree, root, outside):
        os.link(outside / "secret", root / "a.md")
        with pytest.raises(Unsafe, match="hard link"):
            tree.read("a.md")

    def test_that_are_pipes_are_refused_at_once(self, tree, root):
        os.mkfifo(root / "pipe")
        with pytest.raises(Unsafe):
            tree.read("pipe")

    def test_that_become_pipes_between_look_and_open_hold_nobody(self, tree, root, monkeypatch):
        tree.write("a.md", b"x")
        look = os.stat

        def swap(name, **how):
            found = look(name, **how)
            (root / "a.md").unlink()
            os.mkfifo(root / "a.md")
            return found

        monkeypatch.setattr(os, "stat", swap)
        with pytest.raises(Unsafe):
            tree.read("a.md")

    def test_that_become_links_between_look_and_open_are_not_followed(
        self, tree, root, outside, monkeypatch
    ):
        tree.write("a.md", b"x")
        look = os.stat

        def swap(name, **how):
            found = look(name, **how)
            (root / "a.md").unlink()
            (root / "a.md").symlink_to(outside / "secret")
            return found

        monkeypatch.setattr(os, "stat", swap)
        with pytest.raises(Unsafe):
            tree.read("a.md")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
    def test_that_are_devices_are_refused(self, tree, root):
        try:
            os.mknod(root / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("this machine makes no device files")
        with pytest.raises(Unsafe):
            tree.read("zero")

    def test_that_are_folders_are_refused(self, tree, root):
        (root / "a").mkdir()
        with pytest.raises(Unsafe):
            tree.read("a")

    def test_that_are_huge_and_empty_are_not_read(self, tree, root):
        with (root / "sparse").open("wb") as file:
            file.truncate(10 * 1024**3)
        with pytest.raises(TooLarge):
            tree.read("sparse", limit=1000)

    def test_that_grow_while_they_are_read_are_cut_off(self, tree, root, monkeypatch):
        tree.write("a.md", b"x" * 2000)
        look = os.fstat

        def small(fd):
            found = look(fd)
            return os.stat_result([*found[:6], 10, *found[7:]])

        monkeypatch.setattr(os, "fstat", small)
        with pytest.raises(TooLarge):
            tree.read("a.md", limit=1000)


class TestReading:
    def test_says_what_is_missing(self, tree):
        for path in ("a.md", "a/b.md"):
            with pytest.raises(Missing):
                tree.read(path)

    def test_takes_exactly_its_limit(self, tree):
        tree.write("a.md", b"x" * 1000)
        assert tree.read("a.md", limit=1000) == b"x" * 1000
        with pytest.raises(TooLarge):
            tree.read("a.md", limit=999)


class TestEntries:
    def test_shows_plain_files_and_folders_only(self, tree, root, outside):
        tree.write("a/b.md", b"12345")
        tree.write("a/c/d.md", b"x")
        (root / "a/link").symlink_to(outside)
        os.mkfifo(root / "a/pipe")
        (root / "a/.tmp-0123").write_text("half a file")
        assert tree.entries("a") == [
            TreeEntry("b.md", is_folder=False, size=5),
            TreeEntry("c", is_folder=True, size=0),
        ]

    def test_shows_the_root(self, tree):
        tree.write("a.md", b"x")
        assert [e.name for e in tree.entries()] == ["a.md"]

    def test_says_what_is_missing(self, tree):
        with pytest.raises(Missing):
            tree.entries("nothing/here")


class TestRaces:
    """Somebody swaps a folder for a link to the outside, as fast as it can."""

    ROUNDS = 3000

    @pytest.fixture
    def swapping(self, root, outside):
        (root / "a").mkdir()
        (root / "a/secret").write_text("mine")
        (root / "evil").symlink_to(outside)
        done = threading.Event()

        def swap():
            one, other = os.fsencode(root / "a"), os.fsencode(root / "evil")
            while not done.is_set():
                exchange(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)

        thread = threading.Thread(target=swap)
        thread.start()
        yield
        done.set()
        thread.join()

    def test_never_read_what_is_outside(self, tree, swapping):
        seen = set()
        for _ in range(self.ROUNDS):
            try:
                seen.add(tree.read("a/secret"))
            except (Unsafe, Missing) as refusal:
                seen.add(type(refusal).__name__)
        assert seen == {b"mine", "Unsafe"}

    def test_never_write_what_is_outside(self, tree, swapping, outside):
        for _ in range(self.ROUNDS // 10):
            try:
                tree.write("a/planted", b"x")
            except (Unsafe, Missing, OSError):
                continue
        assert names(outside) == ["secret"]
