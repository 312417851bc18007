"""A branch that cannot be written into a work tree, or is broken off: no file is left half."""

import errno
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, replace

import pytest
from django.utils import timezone

from core import files
from core.decision import Code, Denied, refuse
from documents import tree
from orgchart.models import Organisation
from tests.contracts import world
from tests.decisions import denied
from tests.workspace.git.world import BRANCH, Hands, ensure_repositories, needs_walls
from toolbox.space import STORAGE_FULL
from workspace.git import bare_repository, branches, importing, running, worktree
from workspace.git.bare_repository import BareRepository
from workspace.git.models import Draft
from workspace.git.repositories import bare_of, drafts_of

pytestmark = needs_walls
LARGE, SMALL = "src/search/large.txt", "src/search/small.txt"
VERB = re.compile('"cmd_name","[^}]*"name":"([^"]+)"')
TEXT = "a line\n" * 100_000


@pytest.fixture
def room(monkeypatch):
    """Let no file of a work tree get larger than some bytes; call it again without a number."""
    limits = worktree.LIMITS

    def room(most: int = limits.file) -> None:
        monkeypatch.setattr(worktree, "LIMITS", replace(limits, file=most))

    return room


@dataclass
class Two:
    """Two contracts of one agent: one whose branch has a large file, and one whose has not."""

    hands: Hands
    large: str
    other: str

    def call(self, contract: str, tool: str, **params):
        answer = self.hands.company.post(
            "/api/v1/sessions", {"contract": contract}, "backend_worker"
        ).body
        session = answer.get("id") or answer["result"]["id"]
        headers = {"X-Nexus-Session": session}
        return self.hands.call("backend_worker", tool, headers=headers, **params)

    def take(self, contract: str):
        name = BRANCH if contract == self.large else "feat/other"
        return self.call(contract, "git_branch", name=name)


@pytest.fixture
def two(hands):
    """The branch with the large file is pushed, the other one is in the work tree."""
    large = hands.hire()
    hands.write(SMALL, "of the large one\n")
    hands.write(LARGE, TEXT)
    assert hands.commit(SMALL, LARGE).status == 200
    both = Two(hands, large, hands.hire(assigned_branch="feat/other"))
    assert both.take(both.other).status == 200
    hands.write(SMALL, "of the other\n")
    assert both.call(both.other, "git_commit", message="m", paths=[SMALL]).status == 200
    return both


def full_disk_of_git(patched):
    """Let git fail to write each object and ref."""
    run_git = bare_repository.run_git
    said = b"fatal: write error: No space left on device"

    def failing(words, *given, **options):
        if {"index-pack", "push", "update-ref"} & set(words):
            return subprocess.CompletedProcess(words, 1, b"", said)
        return run_git(words, *given, **options)

    patched.setattr(bare_repository, "run_git", failing)


def full_machine_of_git(patched, folder, said):
    """Let git fail to start the program that takes a push, or its hook."""
    git = folder / "git"
    git.write_text(
        f'#!/bin/sh\nfor word; do [ "$word" = push ] && echo "{said}" >&2 && exit 128; done\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    path = f"{folder}:{running.ENVIRONMENT['PATH']}"
    patched.setenv("PATH", path)
    patched.setitem(running.ENVIRONMENT, "PATH", path)


def no_program(*given, **options):
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def no_room():
    raise Denied(STORAGE_FULL)


def read(hands, path, handle="backend_worker"):
    file = hands.tree(handle) / path
    return file.read_text() if file.exists() else None


class TestTheReserveOfTheDatabasesDisk:
    @pytest.mark.parametrize("room", [(len(TEXT), 1000), (2**62, 1)], ids=["bytes", "names"])
    @pytest.mark.parametrize("discard", [False, True])
    def test_is_no_room_for_the_files_of_a_branch(self, two, monkeypatch, room, discard):
        """Git would use the last of it, and remove its files again: a database ends meanwhile."""
        monkeypatch.setattr(worktree, "room_beyond_reserve", lambda _: room)
        name, before = {"name": BRANCH, "discard_changes": discard}, read(two.hands, SMALL)
        refused = two.call(two.large, "git_branch", **name)
        assert (refused.status, refused.code) == (507, "STORAGE_FULL")
        assert "no room for them" in refused.body["message"]
        assert (read(two.hands, SMALL), read(two.hands, LARGE)) == (before, None)
        monkeypatch.undo()
        assert two.call(two.large, "git_branch", **name).status == 200
        assert read(two.hands, LARGE) == TEXT

    def test_is_no_room_for_the_first_files_of_a_work_tree(self, two, monkeypatch):
        monkeypatch.setattr(worktree, "room_beyond_reserve", lambda _: (10, 10))
        hands = two.hands
        for each in hands.tree().iterdir():
            shutil.rmtree(each)
        Draft.objects.update(checked_out=False)
        assert two.take(two.large).code == "STORAGE_FULL"
        assert read(hands, LARGE) is None
        monkeypatch.undo()
        assert two.take(two.large).status == 200
        assert read(hands, LARGE) == TEXT

    def test_is_no_room_for_files_that_were_given_up(self, two, monkeypatch):
        assert two.take(two.large).status == 200
        two.hands.write(LARGE, "short")
        monkeypatch.setattr(worktree, "room_beyond_reserve", lambda _: (len(TEXT), 9))
        name = {"name": BRANCH, "discard_changes": True}
        assert two.call(two.large, "git_branch", **name).code == "STORAGE_FULL"
        assert read(two.hands, LARGE) == "short"

    def test_ends_an_import(self, monkeypatch, hands, tmp_path):
        source = tmp_path / "source"
        subprocess.run(["git", "init", "-q", "--bare", source], check=True)
        monkeypatch.setattr(importing, "require_space", no_room)
        organisation = Organisation.objects.get(id=hands.company.organisation.id)
        with denied("STORAGE_FULL"), importing.prepared(organisation, str(source), timezone.now()):
            pytest.fail("it was imported")


class TestAMachineThatStartsNoMorePrograms:
    """Neither git itself, nor what git would start: the agent did nothing wrong."""

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "error: cannot create async thread: Resource temporarily unavailable",
            "remote: hooks/pre-receive: 1: Cannot fork",
        ],
    )
    def test_is_said_and_the_same_call_is_done_later(self, hands, monkeypatch, tmp_path, said):
        hands.hire()
        hands.write(SMALL, "mine\n")
        assert hands.commit(SMALL).status == 200
        key = {"Idempotency-Key": "one"}
        with monkeypatch.context() as patched:
            if said:
                full_machine_of_git(patched, tmp_path, said)
            else:
                patched.setattr(running.subprocess, "Popen", no_program)
            refused = hands.call("backend_worker", "git_push", branch=BRANCH, headers=key)
            assert (refused.status, refused.code) == (503, "DRIVER_UNAVAILABLE")
            assert "no more programs" in refused.body["message"]
        assert hands.call("backend_worker", "git_push", branch=BRANCH, headers=key).status == 200


class TestAFirstBranch:
    def test_that_cannot_be_written_leaves_none_of_its_files(self, hands, room):
        first = hands.hire()
        hands.pushed(LARGE, TEXT)
        world.close(hands.company, first, "cancelled")
        hands.hire("frontend_worker")
        mine = hands.write("src/search/mine.txt", "mine\n", "frontend_worker")
        room(100_000)
        key = {"Idempotency-Key": "one"}
        refused = hands.branch("frontend_worker", headers=key)
        assert (refused.status, refused.code) == (507, "STORAGE_FULL")
        assert (read(hands, LARGE, "frontend_worker"), mine.read_text()) == (None, "mine\n")
        room()
        assert hands.branch("frontend_worker", headers=key).status == 200
        assert read(hands, LARGE, "frontend_worker") == TEXT

    def test_that_was_broken_off_is_written_to_its_end(self, hands):
        """The server ended in the middle of a file: it is no file that the agent wrote."""
        first = hands.hire()
        hands.write(SMALL, "of the branch\n")
        assert hands.commit(SMALL).status == 200
        hands.pushed(LARGE, TEXT)
        world.close(hands.company, first, "cancelled")
        hands.hire("frontend_worker")
        hands.write(LARGE, TEXT[:70_001], "frontend_worker")
        hands.write(SMALL, "mine\n", "frontend_worker")
        assert hands.branch("frontend_worker").status == 200
        assert read(hands, LARGE, "frontend_worker") == TEXT
        assert read(hands, SMALL, "frontend_worker") == "mine\n"


class TestAFileThatIsBeingWritten:
    """By another call, or by one that was killed: no one wrote what git would find."""

    def test_is_in_no_commit(self, hands, monkeypatch):
        hands.hire()
        mine = hands.write(SMALL, "mine\n")

        def killed(*given, **options):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            for step in ("rename", "unlink"):
                patched.setattr(tree.os, step, killed)
            with pytest.raises(KeyboardInterrupt):
                tree.SafeTree(hands.tree("backend_worker")).write(LARGE, b"half of it")
        (left,) = set(mine.parent.iterdir()) - {mine}
        hands.give("backend_worker")
        made = hands.commit("src/search/").result["commit"]
        named = BareRepository(hands.drafts).run("ls-tree", "-r", "--name-only", made).decode()
        assert SMALL in named
        assert left.name not in named


class TestChangesThatAreGivenUp:
    def test_leave_no_half_of_a_file_that_cannot_be_written(self, hands, room):
        hands.hire()
        hands.pushed(LARGE, TEXT)
        hands.write(LARGE, "changed\n")
        room(100_000)
        refused = hands.branch(discard_changes=True)
        assert (refused.status, refused.code) == (507, "STORAGE_FULL")
        assert read(hands, LARGE) is None
        room()
        assert hands.branch(discard_changes=True).status == 200
        assert read(hands, LARGE) == TEXT


class TestAnotherBranch:
    def test_that_cannot_be_written_leaves_the_files_as_they_were(self, two, room):
        hands = two.hands
        mine = hands.write("src/search/mine.txt", "mine\n")
        room(100_000)
        refused = two.take(two.large)
        assert (refused.status, refused.code) == (507, "STORAGE_FULL")
        assert read(hands, LARGE) is None
        assert (read(hands, SMALL), mine.read_text()) == ("of the other\n", "mine\n")
        room()
        mine.unlink()
        assert two.take(two.large).status == 200
        assert (read(hands, SMALL), read(hands, LARGE)) == ("of the large one\n", TEXT)

    def test_that_meets_a_file_of_another_call_leaves_it(self, two, monkeypatch):
        """The agent wrote it when git had looked already; no disk is full."""
        refused = self.take_meanwhile(two, monkeypatch, f"echo late >/work/{LARGE}")
        assert (refused.status, refused.code) == (409, "INVALID_TRANSITION")
        assert LARGE in refused.body["message"]
        assert (read(two.hands, SMALL), read(two.hands, LARGE)) == ("of the other\n", "late\n")
        assert two.take(two.large).code == "INVALID_TRANSITION"

    def test_that_meets_a_file_while_it_is_written_is_refused_for_that(self, two, monkeypatch):
        said = f"error: unable to create file {LARGE}: File exists"
        meanwhile = f"echo '{said}' >>/tmp/said; false &&"
        refused = self.take_meanwhile(two, monkeypatch, meanwhile, end=" ")
        assert (refused.status, refused.code) == (409, "INVALID_TRANSITION")
        assert "while git turned it" in refused.body["message"]
        assert read(two.hands, SMALL) == "of the other\n"
        assert two.take(two.large).status == 200

    def take_meanwhile(self, two, monkeypatch, words, end="\n"):
        """Take the branch with the large file, with this done before its files are written."""
        turn = 'git read-tree -m -u "$old" "$new" ||'
        script = worktree.CHECK_OUT.replace(turn, f"{words}{end}{turn}")
        with monkeypatch.context() as patched:
            patched.setattr(worktree, "CHECK_OUT", script)
            return two.take(two.large)

    def test_that_was_broken_off_is_no_change_of_the_agent(self, two, monkeypatch):
        """The server ended when some files were those of the other branch, and one was half."""
        hands = two.hands
        run = worktree.AgentWorkTree._outcome

        def broken_off(place, script, *words):
            hands.write(LARGE, TEXT[:50_001])
            (hands.tree() / SMALL).unlink()
            raise KeyboardInterrupt

        monkeypatch.setattr(worktree.AgentWorkTree, "_outcome", broken_off)
        with pytest.raises(KeyboardInterrupt):
            two.take(two.large)
        monkeypatch.setattr(worktree.AgentWorkTree, "_outcome", run)
        hands.write("src/search/mine.txt", "mine\n")
        made = two.call(two.other, "git_commit", message="m", paths=["src/search/"])
        assert made.status == 200
        changed = hands.files_of(made.result["commit"])
        assert changed == ["src/search/mine.txt"]
        assert read(hands, SMALL) == "of the other\n"

    def test_that_was_refused_takes_nothing_from_the_agent(self, two):
        """What it changed is its own, also in the files of the other branch."""
        hands = two.hands
        hands.write(SMALL, "changed since\n")
        assert two.take(two.large).code == "INVALID_TRANSITION"
        made = two.call(two.other, "git_commit", message="m", paths=["src/search/"])
        assert hands.files_of(made.result["commit"]) == [SMALL]
        assert read(hands, SMALL) == "changed since\n"

    def test_whose_record_is_refused_is_turned_back_at_once(self, two, monkeypatch):
        """Else what the agent writes into these files next would be turned back."""
        hands = two.hands

        def refused(*_):
            raise refuse(Code.INVALID_TRANSITION, "the contract ended", "take another")

        with monkeypatch.context() as patched:
            patched.setattr(branches, "_save_draft", refused)
            assert two.take(two.large).code == "INVALID_TRANSITION"
        assert (read(hands, SMALL), read(hands, LARGE)) == ("of the other\n", None)
        hands.write(SMALL, "changed since\n")
        made = two.call(two.other, "git_commit", message="m", paths=["src/search/"])
        assert hands.files_of(made.result["commit"]) == [SMALL]

    def test_that_was_not_recorded_is_turned_back(self, two, monkeypatch):
        hands = two.hands

        def gone(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(branches, "_save_draft", gone)
            with pytest.raises(KeyboardInterrupt):
                two.take(two.large)
        assert read(hands, LARGE) == TEXT
        nothing = two.call(two.other, "git_commit", message="m", paths=["src/search/"])
        assert nothing.code == "INVALID_TRANSITION"
        assert (read(hands, SMALL), read(hands, LARGE)) == ("of the other\n", None)
        assert two.take(two.large).status == 200


class TestADiskWithoutRoom:
    def test_refuses_a_file_with_the_reason(self, hands, monkeypatch):
        hands.hire()
        assert hands.branch().status == 200

        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        file = {"path": "src/search/new.py", "content": "x", "headers": {"Idempotency-Key": "one"}}
        with monkeypatch.context() as patched:
            patched.setattr(tree.os, "fsync", full)
            refused = hands.call("backend_worker", "write_file", **file)
        assert (refused.status, refused.code) == (507, "STORAGE_FULL")
        assert hands.call("backend_worker", "write_file", **file).status == 200

    @pytest.mark.parametrize("tool", ["git_branch", "git_commit", "git_push"])
    def test_refuses_what_git_would_write(self, hands, monkeypatch, tool):
        """The same call under the same key is done when there is room."""
        hands.hire()
        if tool != "git_branch":
            hands.write("src/search/index.py")
        if tool == "git_push":
            assert hands.commit().status == 200
        params = {
            "git_branch": {"name": BRANCH},
            "git_commit": {"message": "m", "paths": ["src/search/"]},
            "git_push": {"branch": BRANCH},
        }[tool]
        params["headers"] = {"Idempotency-Key": "one"}
        with monkeypatch.context() as patched:
            full_disk_of_git(patched)
            refused = hands.call("backend_worker", tool, **params)
        assert (refused.status, refused.code) == (507, "STORAGE_FULL")
        assert hands.call("backend_worker", tool, **params).status == 200


class TestARepositoryThatIsBroken:
    """A disk lost what git keeps: the agent did nothing wrong, and the operator is to be told."""

    @pytest.mark.parametrize("tool", ["git_branch", "git_push", "review_pr"])
    def test_is_said_to_who_works_in_it(self, hands, tool):
        first = hands.hire()
        hands.pushed(SMALL, "first\n")
        if tool == "git_push":
            hands.write(SMALL, "second\n")
            assert hands.commit(SMALL).status == 200
        bare = bare_of(hands.company.organisation)
        for folder in (bare.folder / "objects").glob("??"):
            shutil.rmtree(folder)
        if tool == "git_branch":
            world.close(hands.company, first, "cancelled")
            hands.hire("frontend_worker")
            hands.tree("frontend_worker")
        handle, params = {
            "git_branch": ("frontend_worker", {"name": BRANCH}),
            "git_push": ("backend_worker", {"branch": BRANCH}),
            "review_pr": ("it_manager", {"branch": BRANCH, "comment": "c"}),
        }[tool]
        if tool == "review_pr":
            hands.lead()
        refused = hands.call(handle, tool, **params)
        assert (refused.status, refused.code) == (503, "DRIVER_UNAVAILABLE")
        assert "git fsck" in refused.body["next_action"]
        assert str(bare.folder) not in str(refused.body)

    def test_does_not_say_that_the_files_of_a_commit_are_broken(self, hands):
        """Nor is that kept as the answer to the call, which is made again when it is mended."""
        hands.hire()
        hands.write(SMALL)
        assert hands.branch().status == 200
        packs = hands.drafts / "objects" / "pack"
        packs.rename(packs.with_name("aside"))
        packs.touch()
        once = {"headers": {"Idempotency-Key": "one"}, "message": "m", "paths": [SMALL]}
        refused = hands.call("backend_worker", "git_commit", **once)
        assert (refused.status, refused.code) == (503, "DRIVER_UNAVAILABLE")
        packs.unlink()
        packs.with_name("aside").rename(packs)
        assert hands.call("backend_worker", "git_commit", **once).status == 200

    def test_is_a_disk_that_takes_nothing_where_it_is_one_of_the_two(self, hands, monkeypatch):
        """A push writes into the repository, from the drafts, whose disk may be another."""
        hands.hire()
        hands.write(SMALL)
        assert hands.commit(SMALL).status == 200
        bare = bare_of(hands.company.organisation).folder
        for folder in (bare / "objects").glob("??"):
            shutil.rmtree(folder)
        monkeypatch.setattr(bare_repository, "takes_files", lambda folder: folder != bare)
        assert hands.push().code == "STORAGE_FULL"


class TestALockOfAKilledCommand:
    """Git would refuse the ref for ever: it removes no lock but its own."""

    def lock(self, folder, name, *, age):
        file = folder / f"{name}.lock"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (time.time() - age,) * 2)
        return file

    def test_on_a_draft_is_removed(self, hands):
        contract = hands.hire()
        hands.write("src/search/index.py")
        assert hands.branch().status == 200
        lock = self.lock(hands.drafts, f"refs/drafts/{contract}", age=3600)
        assert hands.commit().status == 200
        assert not lock.exists()

    def test_on_a_branch_is_removed(self, hands):
        hands.hire()
        hands.write("src/search/index.py")
        assert hands.commit().status == 200
        bare = bare_of(hands.company.organisation).folder
        lock = self.lock(bare, f"refs/heads/{BRANCH}", age=3600)
        assert hands.push().status == 200
        assert not lock.exists()

    @pytest.mark.parametrize(
        "name", ["objects/info/commit-graph", "logs/HEAD", "logs/refs/heads/main", "gc.pid"]
    )
    def test_keeps_no_repository_from_being_packed(self, hands, name):
        """Else it grows without end after a stop that came while it was packed."""
        hands.hire()
        hands.pushed()
        bare = bare_of(hands.company.organisation)
        self.lock(bare.folder, name, age=3600)
        bare.run("gc", "--quiet", "--no-prune")  # raises where it ends at a lock, as most git do

    def test_is_not_looked_for_after_an_answer_of_no(self, hands, monkeypatch):
        hands.hire()
        hands.write("src/search/index.py")
        assert hands.commit().status == 200
        monkeypatch.setattr(BareRepository, "_remove_left_locks", pytest.fail)
        drafts = BareRepository(hands.drafts)
        assert not drafts.succeeds("show-ref", "--verify", "--quiet", "refs/heads/none")

    def test_is_left_to_a_command_that_may_still_work(self, hands):
        contract = hands.hire()
        hands.write("src/search/index.py")
        assert hands.branch().status == 200
        lock = self.lock(hands.drafts, f"refs/drafts/{contract}", age=60)
        assert hands.commit().code == "DRIVER_UNAVAILABLE"
        lock.unlink()
        assert hands.commit().status == 200


class TestAMachineThatEnds:
    """What the rows name is on the disk before the rows are: both survive a loss of power."""

    def test_has_the_objects_and_refs_of_every_command(self, hands, monkeypatch, tmp_path):
        hands.hire()
        hands.write("src/search/index.py")
        monkeypatch.setitem(running.ENVIRONMENT, "GIT_TRACE2_EVENT", str(tmp_path))
        assert hands.commit().status == 200
        assert hands.push().status == 200
        traces = [file.read_text() for file in tmp_path.iterdir()]
        flushed = {
            verb for text in traces if "hardware-flush" in text for verb in VERB.findall(text)
        }
        assert flushed >= {
            "index-pack",
            "commit-tree",
            "update-ref",
            "unpack-objects",
            "receive-pack",
        }

    def test_has_all_files_of_a_new_repository(self, nexus, monkeypatch):
        kept = set()
        monkeypatch.setattr(files.os, "fsync", lambda file: kept.add(os.fstat(file).st_ino))
        ensure_repositories(now=timezone.now())
        for folder in (bare_of(nexus.organisation).folder, drafts_of(nexus.organisation).folder):
            found = {path.stat().st_ino for path in (folder, *folder.rglob("*"))}
            assert found <= kept
            assert folder.parent.stat().st_ino in kept
