"""The company tree whose disk is missing: nothing is written into the folder in its place."""

import errno
from datetime import timedelta
from pathlib import Path

import pytest

from documents import root
from documents.files import write_missing_files
from documents.memory.services import append_memory
from documents.models import Document, Memory
from documents.services import write_note
from tests.disks import hanging
from tests.documents.world import NOW, caller_of
from tests.patience import PATIENCE, wait_until
from workspace.provisioning import provision


@pytest.fixture
def tree(settings, tmp_path):
    """The tree of an installation that has been started."""
    settings.NEXUS_VAR, settings.WORKSPACE_ROOT = tmp_path, tmp_path / "company"
    root.know_root()
    yield settings.WORKSPACE_ROOT
    root._known.cache_clear()


def unmount(tree: Path) -> None:
    """An empty folder is in its place."""
    tree.rename(tree.with_name("unmounted"))
    tree.mkdir()


def mount(tree: Path) -> None:
    assert list(tree.iterdir()) == []
    tree.rmdir()
    tree.with_name("unmounted").rename(tree)


def refused(tree: Path):
    return pytest.raises(OSError, match=f"{tree} is not the company tree.*Is its disk mounted")


class TestTheStatus:
    """Spec: files 25."""

    def test_is_that_it_is_there(self, tree):
        assert root.tree_status() == "reachable"

    def test_is_that_its_disk_is_missing(self, tree):
        unmount(tree)
        assert "its disk may not be mounted" in root.tree_status()
        mount(tree)
        assert root.tree_status() == "reachable"

    def test_is_the_same_where_the_mark_is_none_of_ours(self, tree):
        (tree / root.MARK).write_bytes(b"\xff\xfe")
        assert "its disk may not be mounted" in root.tree_status()
        with refused(tree):
            root.root()

    def test_is_that_its_disk_hangs_and_keeps_no_place(self, tree, monkeypatch):
        monkeypatch.setattr(root.ask_mark, "_seconds", 0.01)
        with hanging(tree):
            assert root.tree_status().endswith("WORKSPACE_ROOT, does not answer")
        monkeypatch.setattr(root.ask_mark, "_seconds", PATIENCE)
        wait_until(lambda: root.tree_status() == "reachable")

    def test_is_what_the_system_says(self, tree, monkeypatch):
        def broken():
            raise OSError(errno.EIO, "Input/output error", str(tree))

        monkeypatch.setattr(root.ask_mark, "_find", broken)
        assert root.tree_status() == "the company tree, WORKSPACE_ROOT: Input/output error"


class TestTheRoot:
    def test_is_taken_as_it_is_before_the_first_start(self, settings, tmp_path):
        settings.NEXUS_VAR, settings.WORKSPACE_ROOT = tmp_path, tmp_path / "company"
        assert root.root() == tmp_path / "company"

    def test_stays_the_same_at_every_start(self, tree):
        before = (tree / root.MARK).read_text()
        root.know_root()
        assert (tree / root.MARK).read_text() == before
        assert root.root() == tree

    @pytest.mark.parametrize("ask", [root.root, root.know_root, provision])
    def test_is_refused_where_its_disk_is_missing(self, nexus, tree, ask):
        unmount(tree)
        with refused(tree) as refusal:
            ask()
        assert refusal.value.errno == errno.ENODEV
        mount(tree)
        assert root.root() == tree

    def test_is_refused_where_it_is_another_one(self, tree):
        (tree / root.MARK).write_text("another")
        with refused(tree):
            root.know_root()

    def test_is_learned_anew_where_the_setting_names_another_place(self, tree, settings, tmp_path):
        settings.WORKSPACE_ROOT = tmp_path / "other"
        root.know_root()
        assert root.root() == tmp_path / "other"

    def test_is_learned_again_where_it_was_forgotten(self, tree):
        (tree / root.MARK).write_text("another")
        root.forget_root()
        root.know_root()
        assert root.root() == tree

    def test_is_learned_later_where_there_is_no_room(self, settings, tmp_path, monkeypatch):
        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        settings.NEXUS_VAR, settings.WORKSPACE_ROOT = tmp_path, tmp_path / "company"
        with monkeypatch.context() as patched:
            patched.setattr(root, "place", full)
            root.know_root()
        assert root.root() == tmp_path / "company"


class TestWithoutItsDisk:
    @pytest.fixture
    def ceo(self, nexus, tree, django_capture_on_commit_callbacks):
        caller = caller_of(nexus, "ceo")
        with django_capture_on_commit_callbacks(execute=True):
            append_memory(caller=caller, scope="agent", text="before", now=NOW)
        unmount(tree)
        return caller

    def test_a_document_is_a_row_and_gets_its_file_later(
        self, ceo, tree, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            note = write_note(caller=ceo, title="t", content="c", for_board=False, now=NOW)
        assert Document.objects.get().filed_at is None
        mount(tree)
        write_missing_files(NOW + timedelta(hours=1))
        assert (tree / "nexus" / note["path"]).read_text() == "c"

    def test_a_memory_is_rows_and_no_person_changed_its_file(
        self, ceo, tree, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            append_memory(caller=ceo, scope="agent", text="meanwhile", now=NOW)
        mount(tree)
        with django_capture_on_commit_callbacks(execute=True):
            append_memory(caller=ceo, scope="agent", text="after", now=NOW)
        entries = Memory.objects.order_by("id")
        assert list(entries.values_list("text", "person")) == [
            ("before", ""), ("meanwhile", ""), ("after", ""),
        ]  # fmt: skip
        text = (tree / "nexus/agents/ceo/MEMORY.md").read_text()
        assert "meanwhile" in text
        assert "after" in text
