"""Archives of folders that agents change at the very moment when they are read."""

import contextlib
import os
import socket
import sys
import tarfile
from pathlib import Path

import pytest

from nexus_site.run import archives
from orgchart.policy.paths import MAX_PATH

SECRET = "a key of the installation"
MEANWHILE = {}
DEEP = archives.LONGEST_NAME // 2 + 20


@sys.addaudithook  # it stays for as long as the process lives, so that one is enough
def _run_meanwhile(event, details):
    if event == "open" and MEANWHILE and isinstance(details[0], str):
        act = MEANWHILE.pop(Path(details[0]).name, None)
        if act is not None:
            act()


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    place = tmp_path / "company"
    place.mkdir()
    (place / "first").write_text("first")
    (place / "plan.md").write_text("The plan.")
    yield place
    MEANWHILE.clear()


@pytest.fixture
def packed(tree, tmp_path):
    """Pack the tree, while these things happen just before a name is opened; what is in it."""

    def pack(**meanwhile):
        MEANWHILE.update({name.replace("_", "."): act for name, act in meanwhile.items()})
        path = tmp_path / "tree.tar"
        archives.pack(path, {"company": tree})
        with tarfile.open(path) as archive:
            return {
                each.name.removeprefix("company/"): archive.extractfile(each).read()
                if each.isfile()
                else each.type
                for each in archive.getmembers()
            }

    return pack


class TestWhatAgentsDoMeanwhile:
    def test_a_file_that_vanishes_is_left_out(self, tree, packed):
        found = packed(plan_md=(tree / "plan.md").unlink)
        assert found == {"company": tarfile.DIRTYPE, "first": b"first"}

    def test_a_link_in_the_place_of_a_file_shows_no_other_file(self, tree, packed, tmp_path):
        def swap():
            (tree / "plan.md").unlink()
            (tree / "plan.md").symlink_to(tmp_path / "secret")

        found = packed(plan_md=swap)
        assert found["plan.md"] == tarfile.SYMTYPE
        assert SECRET not in str(found)

    def test_a_link_in_the_place_of_a_folder_shows_no_other_folder(self, tree, packed, tmp_path):
        (tree / "work").mkdir()
        (tmp_path / "keys").mkdir()
        (tmp_path / "keys" / "secret").write_text(SECRET)

        def swap():
            (tree / "work").rmdir()
            (tree / "work").symlink_to(tmp_path / "keys")

        assert packed(work=swap)["work"] == tarfile.SYMTYPE

    def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(self, tree, packed):
        def swap():
            (tree / "plan.md").unlink()
            os.mkfifo(tree / "plan.md")

        assert "plan.md" not in packed(plan_md=swap)

    def test_a_file_that_is_cut_off_does_not_end_the_backup(self, tree):
        with (tree / "plan.md").open("rb") as file:
            whole = archives.Whole(file)
            assert (whole.read(4), whole.read(10)) == (b"The ", b"plan.\0\0\0\0\0")


def test_an_archive_that_fails_leaves_nothing_behind(tree, tmp_path, monkeypatch):
    """As on a full disk: half of the keys would lie there."""

    def fails(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(archives.os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        archives.pack(tmp_path / "keys.tar", {"company": tree})
    assert not list(tmp_path.glob("keys.tar*"))


class TestWhatAgentsLeave:
    def test_folders_without_end_are_packed_as_far_as_names_go(self, tree, packed, tmp_path):
        with contextlib.chdir(tree):
            for _ in range(DEEP):
                Path("d").mkdir()
                os.chdir("d")
        found = packed()
        assert found["plan.md"] == b"The plan."
        assert MAX_PATH < max(map(len, found)) < 2 * DEEP
        with archives.unpacked(tmp_path / "tree.tar", {"company": tmp_path / "fresh"}):
            pass
        assert (tmp_path / "fresh" / "plan.md").read_text() == "The plan."

    def test_two_names_of_a_file_are_packed_once(self, tree, packed):
        os.link(tree / "plan.md", tree / "zweiter")
        assert packed()["zweiter"] == tarfile.LNKTYPE

    def test_a_socket_is_left_out(self, tree, packed):
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(tree / "s"))
            assert "s" not in packed()
