"""Archives of folders that agents change at the very moment when they are read."""

import contextlib
import io
import os
import socket
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from nexus_site.run import archives
from nexus_site.run.identity import plain_user
from orgchart.policy.paths import MAX_PATH
from tests.disks import disk

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

    def test_a_file_that_is_moved_is_there(self, tree, packed):
        """To a folder that was read before: it would be in neither."""
        (tree / "a").mkdir()
        found = packed(plan_md=lambda: (tree / "plan.md").rename(tree / "a" / "plan.md"))
        assert found["a/plan.md"] == b"The plan."
        assert found["a"] == tarfile.DIRTYPE

    def test_a_folder_that_is_moved_is_there(self, tree, packed):
        for each in ("a", "z/deep"):
            (tree / each).mkdir(parents=True)
        (tree / "z" / "deep" / "kept").write_text("Kept.")
        found = packed(z=lambda: (tree / "z").rename(tree / "a" / "z"))
        assert found["a/z/deep/kept"] == b"Kept."

    def test_a_name_that_changes_its_kind_keeps_its_first(self, tree, packed):
        (tree / "z").mkdir()

        def swap():
            (tree / "first").unlink()
            (tree / "first").mkdir()
            (tree / "first" / "in").write_text("in")

        found = packed(z=swap)
        assert found["first"] == b"first"
        assert "first/in" not in found

    def test_a_file_with_the_number_of_a_deleted_one_holds_its_own(self, tree, packed, monkeypatch):
        """The disk gives the number to the next file, of another agent it may be."""
        os.link(tree / "first", tree / "first.too")
        fresh = tree / "z"
        fresh.mkdir()

        def swap():
            (tree / "plan.md").unlink()
            (fresh / "one").write_text("Of another agent.")
            os.link(fresh / "one", fresh / "too")
            numbers[(fresh / "one").stat().st_ino] = deleted

        deleted, fstat = (tree / "plan.md").stat().st_ino, os.fstat
        numbers = dict[int, int]()

        def numbered(file):
            found = fstat(file)
            held = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
            held["st_ino"] = numbers.get(found.st_ino, found.st_ino)
            return SimpleNamespace(**held)

        monkeypatch.setattr(archives.os, "fstat", numbered)
        os.link(tree / "plan.md", tree / "plan.too")
        found = packed(z=swap)
        assert found["z/one"] == b"Of another agent."
        assert found["z/too"] == tarfile.LNKTYPE

    def test_a_file_that_is_cut_off_does_not_end_the_backup(self, tree):
        with (tree / "plan.md").open("rb") as file:
            whole = archives.Whole(file)
            assert (whole.read(4), whole.read(10)) == (b"The ", b"plan.\0\0\0\0\0")


class TestARepository:
    """Git writes the objects of a commit first, then the branch that names it."""

    @pytest.mark.parametrize("moment", ["refs", "objects", "packed-refs", "HEAD", "work.git"])
    def test_has_all_objects_that_its_branches_name(self, tree, packed, moment):
        repository = tree / "work.git"
        for folder in ("objects/aa", "objects/pack", "refs/drafts"):
            (repository / folder).mkdir(parents=True)
        (repository / "HEAD").write_text("ref: refs/heads/main")

        def commit(name):
            (repository / f"objects/aa/{name}").write_text("a commit")
            (repository / "refs/drafts/one").write_text(name)
            (repository / "packed-refs").write_text(name)

        commit("first")
        MEANWHILE[moment] = lambda: commit("second")
        held = packed()
        objects = {name.rpartition("/")[2].encode() for name in held if "/objects/aa/" in name}
        named = {held[f"work.git/{each}"] for each in ("refs/drafts/one", "packed-refs")}
        assert named <= objects

    def test_has_the_new_pack_that_takes_the_place_of_others(self, tree, packed):
        """`git gc` removes packs once their objects are in a new one: none may be in neither."""
        packs = tree / "work.git/objects/pack"
        packs.mkdir(parents=True)
        for name in ("pack-1.pack", "pack-2.pack"):
            (packs / name).write_text(name)

        def gc():
            (packs / "pack-0.pack").write_text("all objects")
            (packs / "pack-1.pack").unlink()
            (packs / "pack-2.pack").unlink()

        found = packed(**{"pack-2_pack": gc})
        assert found["work.git/objects/pack/pack-0.pack"] == b"all objects"

    def test_has_the_objects_of_branches_that_come_after_others(self, tree, packed):
        repository = tree / "work.git"
        (repository / "objects").mkdir(parents=True)
        (repository / "objects" / "first").write_text("a commit")

        def commit():
            (repository / "objects" / "second").write_text("a commit")
            (repository / "packed-refs").write_text("second")

        MEANWHILE["first"] = commit
        found = packed()
        assert found["work.git/packed-refs"] == b"second"
        assert "work.git/objects/second" in found

    def test_has_no_branches_that_come_after_its_objects(self, tree, packed, monkeypatch):
        monkeypatch.setattr(archives, "WALKS", 1)
        repository = tree / "work.git"
        (repository / "objects").mkdir(parents=True)
        MEANWHILE["objects"] = lambda: (repository / "packed-refs").write_text("second")
        assert "work.git/packed-refs" not in packed()


def test_an_archive_that_fails_leaves_nothing_behind(tree, tmp_path, monkeypatch):
    """As on a full disk: half of the keys would lie there."""

    def fails(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(archives.os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        archives.pack(tmp_path / "keys.tar", {"company": tree})
    assert not list(tmp_path.glob("keys.tar*"))


class TestWhatAgentsLeave:
    def test_a_folder_in_which_names_come_without_end_is_left_in_time(self, tree, packed):
        for number in range(100):
            MEANWHILE[f"n{number}"] = (tree / f"n{number + 1}").mkdir
        (tree / "n0").mkdir()
        assert {f"n{number}" for number in range(archives.LOOKS)} <= set(packed())
        assert len(MEANWHILE) == 100 - archives.WALKS * archives.LOOKS

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


class TestAPlaceThatExists:
    """As the folder where a disk or a volume of its own is mounted: nothing can take its place."""

    @pytest.fixture
    def unpack(self, tree, packed, tmp_path):
        tree.chmod(0o750)
        packed()

        def names_in(place):
            return {each.name for each in place.iterdir()}

        def unpack(place):
            before = names_in(place) | {archives.UNFINISHED}
            with archives.unpacked(tmp_path / "tree.tar", {"company": place}):
                assert names_in(place) | {archives.UNFINISHED} == before
            return names_in(place)

        return unpack

    @pytest.mark.parametrize("has", [[], ["lost+found"]])
    def test_is_filled_where_it_is_a_disk(self, unpack, tmp_path, has):
        place = tmp_path / "mounted"
        with disk(place, 1):
            for name in has:
                (place / name).mkdir()
            assert unpack(place) == {"first", "plan.md", *has}
            assert place.stat().st_mode & 0o777 == 0o750

    def test_is_filled_where_it_is_a_link(self, unpack, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        assert unpack(tmp_path / "link") == {"first", "plan.md"}

    def test_is_filled_to_the_end_after_a_kill(self, unpack, tmp_path):
        place = tmp_path / "mounted"
        place.mkdir()
        (place / "first").write_text("whole")
        assert not archives.is_empty(place)
        (place / archives.UNFINISHED / "company").mkdir(parents=True)
        assert archives.is_empty(place)
        assert unpack(place) == {"first", "plan.md"}
        assert (place / "first").read_text() == "whole"

    @pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
    def test_is_filled_to_the_end_after_it_was_filled_by_half(
        self, unpack, tmp_path, monkeypatch, problem
    ):
        place = tmp_path / "mounted"
        place.mkdir()
        move = Path.rename

        def interrupted(path, target):
            move(path, target)
            if Path(target).parent == place:
                raise problem

        def full(*_):
            raise OSError("full: the same files are there already")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", interrupted)
            with pytest.raises(problem):
                unpack(place)
            patched.setattr(archives, "_write", full)
            with pytest.raises(OSError, match="full"):
                unpack(place)
        assert unpack(place) == {"first", "plan.md"}

    def test_is_as_it_was_where_something_fails(self, unpack, tmp_path):
        place = tmp_path / "mounted"
        place.mkdir()
        with (
            pytest.raises(OSError, match="full"),
            archives.unpacked(tmp_path / "tree.tar", {"company": place}),
        ):
            raise OSError("full")
        assert list(place.iterdir()) == []


class TestWhatIsUnpacked:
    def test_needs_no_newer_python(self, tree, packed, tmp_path, monkeypatch):
        """The library's own way asks for 3.11.4, and Debian 12 has 3.11.2."""
        packed()
        monkeypatch.delattr(tarfile.TarFile, "extractall")
        with archives.unpacked(tmp_path / "tree.tar", {"company": tmp_path / "new"}):
            pass
        assert (tmp_path / "new" / "plan.md").read_text() == (tree / "plan.md").read_text()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_belongs_to_who_owns_the_place(self, tree, packed, tmp_path):
        """Spec: files 24."""
        (tree / "link").symlink_to("plan.md")
        packed()
        place = tmp_path / "var" / "company"
        place.parent.mkdir()
        os.chown(place.parent, *plain_user())
        with archives.unpacked(tmp_path / "tree.tar", {"company": place}):
            pass
        found = {each.name: each.lstat() for each in (place, *place.rglob("*"))}
        assert {"company", "plan.md", "link"} <= found.keys()
        assert {(each.st_uid, each.st_gid) for each in found.values()} == {plain_user()}

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_is_not_where_a_link_of_another_user_leads(self, packed, tmp_path):
        packed()
        place, elsewhere = tmp_path / "linked", tmp_path / "elsewhere"
        elsewhere.mkdir()
        place.symlink_to(elsewhere)
        os.lchown(place, *plain_user())
        with (
            pytest.raises(PermissionError, match="a link that another user made"),
            archives.unpacked(tmp_path / "tree.tar", {"company": place}),
        ):
            pass
        assert not any(elsewhere.iterdir())
        os.lchown(place, 0, 0)
        with archives.unpacked(tmp_path / "tree.tar", {"company": place}):
            pass
        assert (elsewhere / "plan.md").exists()

    def test_is_nowhere_else_when_another_folder_takes_its_place(
        self, packed, tmp_path, monkeypatch
    ):
        """Who owns the place can do this while root restores."""
        packed()
        elsewhere, write = tmp_path / "elsewhere", archives._write
        (elsewhere / "company").mkdir(parents=True)
        before = elsewhere.joinpath("company").stat()

        def late(archive, member, *rest):
            (fresh,) = tmp_path.glob(f"*{archives.UNFINISHED}")
            if not fresh.is_symlink():
                fresh.rename(tmp_path / "moved")
                fresh.symlink_to(elsewhere)
            write(archive, member, *rest)

        monkeypatch.setattr(archives, "_write", late)
        with (
            pytest.raises(PermissionError, match="another folder took its place"),
            archives.unpacked(tmp_path / "tree.tar", {"company": tmp_path / "new"}),
        ):
            pass
        assert [*elsewhere.rglob("*")] == [elsewhere / "company"]
        assert elsewhere.joinpath("company").stat() == before


class TestADamagedArchive:
    """Of one whose digest is not kept, as that of the keys, what follows the damage is missing."""

    @pytest.fixture
    def archive(self, tree, tmp_path):
        """The archive, and where the head of its third entry begins."""
        archives.pack(tmp_path / "keys.tar", {"company": tree})
        with tarfile.open(tmp_path / "keys.tar") as opened:
            return tmp_path / "keys.tar", opened.getmembers()[2].offset

    @pytest.mark.parametrize(
        "damage",
        [
            lambda whole, head: whole[: head + 5] + b"?" + whole[head + 6 :],
            lambda whole, head: whole[:head] + bytes(512) + whole[head + 512 :],
            lambda whole, head: whole[:head],
            lambda whole, head: whole[: head + 100],
            lambda whole, head: whole[: head + 512],
            lambda whole, head: whole + bytes(20_000),
        ],
        ids=["one byte", "a sector of zeros", "cut", "cut in a head", "cut behind it", "longer"],
    )
    def test_is_refused_whole(self, archive, tmp_path, damage):
        path, head = archive
        path.write_bytes(damage(path.read_bytes(), head))
        with (
            pytest.raises(tarfile.ReadError),
            archives.unpacked(path, {"company": tmp_path / "new"}),
        ):
            pass
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("size", [0, 511, 512, 513, 6_144, 6_656, 7_168, 7_680, 8_192, 10_240])
    def test_is_none_of_those_that_are_written(self, tree, tmp_path, size):
        """Wherever in its last record an archive ends."""
        (tree / "plan.md").write_bytes(b"x" * size)
        archives.pack(tmp_path / "tree.tar", {"company": tree})
        with archives.unpacked(tmp_path / "tree.tar", {"company": tmp_path / "new"}):
            pass
        assert (tmp_path / "new" / "plan.md").stat().st_size == size


class TestAnArchiveOfOthers:
    """Whoever could change a backup writes nothing outside of the places that it is put into."""

    @pytest.fixture
    def unpack(self, tmp_path):
        """Unpack these members; what is in the place then. `outside` is what none may change."""
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret").write_text(SECRET)

        def unpack(*members, place="company"):
            path = tmp_path / "hostile.tar"
            with tarfile.open(path, "w") as archive:
                for kind, name, words in members:
                    entry = tarfile.TarInfo(name)
                    entry.type, entry.mode = kind, 0o755
                    if kind == tarfile.REGTYPE:
                        entry.size = len(words)
                        archive.addfile(entry, io.BytesIO(words.encode()))
                    else:
                        entry.linkname = words
                        archive.addfile(entry)
            with archives.unpacked(path, {"company": tmp_path / "new" / place}):
                pass
            assert [each.name for each in outside.iterdir()] == ["secret"]
            assert (outside / "secret").read_text() == SECRET
            return {
                str(each.relative_to(tmp_path / "new" / place))
                for each in (tmp_path / "new").rglob("*")
                if each.name != place
            }

        return unpack

    def test_reaches_nothing_by_links_longer_than_a_path_may_be(self, unpack, tmp_path):
        """CVE-2025-4517: beyond the longest path a filter sees no link."""
        folder = "d" * 247
        members, here = [("5", "company", "")], "company"
        for letter in "abcdefghijklmnop":
            members += [("5", f"{here}/{folder}", ""), ("2", f"{here}/{letter}", folder)]
            here = f"{here}/{letter}"
        up = f"{here}/{'l' * 254}"
        parts = len((tmp_path / "new").parts)
        out = f"{up.removeprefix('company/')}/{'../' * parts}{tmp_path}/outside"
        members += [
            ("2", up, "../" * 17),
            ("2", "company/escape", out),
            ("0", "company/escape/written", "x"),
            ("1", "company/hard", "company/escape/secret"),
            ("0", "company/hard", "changed"),
        ]
        members = [(kind.encode(), name, words) for kind, name, words in members]
        assert unpack(*members) == {folder, "a", "escape", "hard"}

    @pytest.mark.parametrize(
        "members",
        [
            [(b"0", "company/../../outside/written", "x")],
            [(b"0", "/company/written", "x")],
            [(b"2", "company", "../outside"), (b"0", "company/written", "x")],
            [(b"5", "company", ""), (b"0", "company//written", "x")],
            [(b"5", "company", ""), (b"0", "company/.", "x")],
            [(b"5", "company", ""), (b"1", "company/hard", "../outside/secret")],
            [(b"5", "company", ""), (b"1", "company/hard", "ledger/key")],
            [(b"5", "company", ""), (b"3", "company/memory", "")],
            [(b"5", "company", ""), (b"6", "company/pipe", "")],
            [(b"5", "company", ""), (b"5", "company/..", ""), (b"0", "company/../up", "x")],
        ],
    )
    def test_puts_nothing_there_that_no_backup_holds(self, unpack, members):
        assert unpack(*members) == set()

    def test_gives_a_name_one_meaning(self, unpack):
        twice = [
            (b"5", "company", ""),
            (b"5", "company/d", ""),
            (b"2", "company/d", ".."),
            (b"0", "company/d/plan.md", "The plan."),
            (b"0", "company/d/plan.md", "Another plan."),
        ]
        assert unpack(*twice) == {"d", "d/plan.md"}

    def test_has_links_in_a_circle(self, unpack):
        circle = [
            (b"5", "company", ""),
            (b"2", "company/self", "self"),
            (b"2", "company/to", "self/x"),
            (b"2", "company/out", "../../outside"),
        ]
        assert unpack(*circle) == {"self", "to"}

    @pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
    def test_is_not_packed_small(self, tmp_path, packing):
        with tarfile.open(tmp_path / "small.tar", f"w:{packing}") as archive:
            archive.addfile(tarfile.TarInfo("company"))
        with (
            pytest.raises(tarfile.ReadError),
            archives.unpacked(tmp_path / "small.tar", {"company": tmp_path / "new"}),
        ):
            pass
