"""What agents can make the repositories weigh, and how they lose weight again."""

import os
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from core.decision import Code, Denied
from tests.contracts import world
from tests.workspace.git.world import BRANCH, SCOPE, needs_walls, run_git
from workspace.git import bare_repository, running, worktree
from workspace.git.garbage import KEPT, collect_garbage
from workspace.git.models import Draft
from workspace.git.repositories import bare_of, drafts_of

pytestmark = [needs_walls, pytest.mark.django_db]
FILE = f"{SCOPE}data.txt"


def objects(hands):
    """How many objects the repository of drafts holds."""
    said = run_git("--git-dir", str(hands.drafts), "count-objects", "-v").splitlines()
    numbers = dict(line.split(": ") for line in said)
    return int(numbers["count"]) + int(numbers["in-pack"])


def has(hands, commit):
    return drafts_of(hands.company.organisation).succeeds("cat-file", "-e", commit)


def grow_old(hands):
    """Everything in the repository of drafts is older than what is kept."""
    then = (timezone.now() - 2 * KEPT).timestamp()
    for path in [hands.drafts, *hands.drafts.rglob("*")]:
        os.utime(path, (then, then))


class TestACommit:
    def test_counts_as_bytes_of_its_agent(self, hands, settings):
        settings.NEXUS_BYTES_PER_MINUTE = 50_000
        hands.hire()
        assert hands.branch().status == 200
        before = objects(hands)
        hands.write(FILE).write_bytes(os.urandom(60_000))
        answer = hands.commit(FILE)
        assert answer.code == "QUOTA_EXCEEDED", answer
        assert objects(hands) == before
        hands.write(FILE, "short\n")
        assert hands.commit(FILE).status == 200

    def test_counts_nothing_that_its_branch_has_already(self, hands, settings):
        """Else no line could be changed in a repository that holds more than a minute's bytes."""
        settings.NEXUS_BYTES_PER_MINUTE = 100_000
        hands.hire()
        assert hands.branch().status == 200
        hands.write(FILE).write_bytes(os.urandom(60_000))
        assert hands.commit(FILE).status == 200
        hands.write(f"{SCOPE}short.txt", "short\n")
        assert hands.commit(f"{SCOPE}short.txt").status == 200

    def test_writes_no_file_anew_that_did_not_change(self, hands, monkeypatch):
        """A folder may hold more than git has room for beside the work tree."""
        hands.hire()
        assert hands.branch().status == 200
        large = hands.write(FILE)
        large.write_bytes(os.urandom(3_000_000))
        os.utime(large, (0, 0))  # of this very second, git takes it for one that may have changed
        hands.write(f"{SCOPE}short.txt", "short\n")
        assert hands.commit(SCOPE).status == 200
        monkeypatch.setattr(worktree, "LIMITS", replace(worktree.LIMITS, scratch=2_000_000))
        hands.write(f"{SCOPE}short.txt", "shorter\n")
        assert hands.commit(SCOPE).status == 200


class TestACommand:
    def test_is_given_all_its_input_however_slowly_it_reads(self, monkeypatch, tmp_path):
        """A pack of many objects takes git seconds to read."""
        (tmp_path / "git").write_text("#!/bin/sh\nsleep 2\nexec wc -c\n")
        (tmp_path / "git").chmod(0o755)
        monkeypatch.setitem(running.ENVIRONMENT, "PATH", f"{tmp_path}:/usr/bin:/bin")
        assert int(running.run_git(["x"], b"x" * 1_000_000, seconds=20).stdout) == 1_000_000

    def test_begins_no_program_without_its_limit_of_memory(self):
        """Not in a busy process either: one that speaks https takes what another machine sends."""
        asks = ["-c", "alias.asks=!ulimit -d", "asks"]
        ended = threading.Event()

        def work():
            while not ended.is_set():
                sum(range(2000))

        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        try:
            found = {running.run_git(asks).stdout.strip() for _ in range(5)}
        finally:
            ended.set()
        assert found == {b"%d" % (running.MEMORY // 1024)}


class TestGarbage:
    @pytest.fixture
    def left(self, hands):
        """The commit of a contract that was cancelled; its agent works on another one now."""
        contract = hands.hire()
        hands.write(FILE)
        commit = hands.commit(FILE).result["commit"]
        world.close(hands.company, contract, "cancelled", version=2)
        hands.hire(assigned_branch="feat/next")
        return commit

    def test_is_what_a_contract_left_that_ended_long_ago(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + 2 * KEPT) == 1
        assert not has(hands, left)
        assert not Draft.objects.filter(branch=BRANCH).exists()
        hands.write(FILE, "y = 2\n")
        assert hands.commit(FILE).status == 200

    def test_is_not_what_the_work_tree_is_compared_with(self, hands, left):
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + 2 * KEPT) == 0
        assert has(hands, left)

    def test_is_not_what_ended_a_short_time_ago(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + KEPT - timedelta(hours=1)) == 0
        assert has(hands, left)

    def test_is_not_a_merge_that_has_not_ended(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        Draft.objects.filter(checked_out=True).update(merged_tree="f" * 40)
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + 2 * KEPT) == 1
        assert has(hands, left)

    def test_is_what_a_killed_process_left(self, hands, left):
        """Else each kill in the middle of a commit would cost its bytes for ever."""
        halves = [hands.drafts / ".quarantine-a", hands.drafts.parent / ".repository-b"]
        new = hands.drafts / ".quarantine-new"
        for folder in (*halves, new):
            folder.mkdir()
            (folder / "half").write_text("x")
        for folder in halves:
            os.utime(folder, (0, 0))
        collect_garbage(now=timezone.now())
        assert [folder.exists() for folder in (*halves, new)] == [False, False, True]

    def test_is_what_killed_commands_of_git_left(self, hands, left):
        """Packing that never comes to its end leaves as much as the repository, each hour."""
        pushed = bare_of(hands.company.organisation).folder
        halves = [
            folder / "objects" / name
            for folder in (pushed, hands.drafts)
            for name in ("pack/tmp_pack_a", "pack/.tmp-9-pack-b.pack", "ab/tmp_obj_c")
        ]
        incoming = pushed / "objects" / "tmp_objdir-incoming-d"
        new = pushed / "objects" / "pack" / "tmp_pack_new"
        for half in (*halves, incoming / "pack" / "half", new):
            half.parent.mkdir(parents=True, exist_ok=True)
            half.write_text("x")
        for half in (*halves, incoming):
            os.utime(half, (0, 0))
        collect_garbage(now=timezone.now())
        assert [each.exists() for each in (*halves, incoming, new)] == [False] * 7 + [True]

    def test_leaves_agents_able_to_read(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        hands.write(FILE, "z = 3\n")
        assert hands.commit(FILE).status == 200
        collect_garbage(now=timezone.now() + 2 * KEPT)
        hands.write(FILE, "z = 4\n")
        assert hands.commit(FILE).status == 200
        assert hands.push(branch="feat/next").status == 200


def a_tree(bare, files):
    """The tree of these files, each at its name."""
    lines = []
    for name, content in files.items():
        blob = bare.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        lines.append(f"100644 blob {blob}\t{name}\n")
    return bare.run("mktree", stdin="".join(lines).encode()).decode().strip()


class TestADifference:
    """Spec: hands 34."""

    def test_of_a_large_file_is_not_made_by_lines(self, hands):
        contract = hands.hire()
        hands.lead()
        assert hands.branch().status == 200
        hands.pushed(FILE, "\n" * 5_000_000)
        hands.submit(contract)
        result = hands.review().result
        assert result["files"] == [FILE]
        assert result["difference"].splitlines()[-1].startswith("Binary files ")
        assert not result["truncated"]

    def test_looks_for_no_similar_files_among_many(self, hands):
        hands.hire()
        assert hands.branch().status == 200
        bare = bare_of(hands.company.organisation)
        lines = "".join(f"{number}\n" for number in range(20))
        old, new = (
            a_tree(bare, {f"{side}{at}": f"{lines}{at}{end}".encode() for at in range(201)})
            for side, end in (("a", ""), ("b", "\n"))
        )
        assert "similarity index" not in bare.difference(old, new, 1_000_000)[0]

    def test_is_cut_where_it_takes_too_much_memory(self, hands, monkeypatch):
        hands.hire()
        assert hands.branch().status == 200
        bare = bare_of(hands.company.organisation)
        old, new = a_tree(bare, {"a": b"x\n"}), a_tree(bare, {"a": b"\n" * 4_000_000})
        assert bare.difference(old, new, 1000)[1]
        monkeypatch.setattr(running, "MEMORY", 30_000_000)
        assert bare.difference(old, new, 10**9) == ("", True)

    def test_is_cut_where_it_takes_too_long(self, hands, monkeypatch, tmp_path):
        (tmp_path / "git").write_text("#!/bin/sh\nprintf begun\nexec sleep 20\n")
        (tmp_path / "git").chmod(0o755)
        monkeypatch.setitem(running.ENVIRONMENT, "PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(running, "SECONDS", 1)
        bare = bare_of(hands.company.organisation)
        assert bare.difference("a", "b", 1000) == ("begun", True)

    def test_is_hidden_by_no_attributes(self, hands):
        """Newer versions of git read them from HEAD in a bare repository, where they may."""
        hands.hire()
        assert hands.branch().status == 200
        bare = bare_of(hands.company.organisation)
        old, new = (
            a_tree(bare, {".gitattributes": b"* -diff\n", "a": text}) for text in (b"1\n", b"2\n")
        )
        who = bare_repository.Signature(name="x", email="x@x.invalid", at=timezone.now())
        bare.set_ref("refs/heads/main", bare.commit(old, [], "x", who))
        assert "+2\n" in bare.difference(old, new, 1000)[0]
        assert bare.run("config", "attr.tree") == bare.run("mktree")

    def test_that_fails_is_never_an_empty_one(self, hands):
        hands.hire()
        assert hands.branch().status == 200
        assert bare_of(hands.company.organisation).difference("0" * 40, "1" * 40, 9) == ("", True)


class TestAMerge:
    def test_that_takes_too_much_memory_is_refused(self, hands, monkeypatch):
        """Spec: hands 34."""
        hands.hire()
        assert hands.branch().status == 200
        bare = bare_of(hands.company.organisation)
        who = bare_repository.Signature(name="x", email="x@x.invalid", at=timezone.now())
        lines = b"x\n" * 2_000_000

        def commit(content, *parents):
            return bare.commit(a_tree(bare, {"a": content}), parents, "x", who)

        begun = commit(lines)
        one, other = commit(lines + b"one\n", begun), commit(lines + b"other\n", begun)
        assert bare.merge(one, other)[1] == ["a"]
        monkeypatch.setattr(running, "MEMORY", 30_000_000)
        with pytest.raises(Denied, match="git cannot merge these commits") as refused:
            bare.merge(one, other)
        assert refused.value.deny.code is Code.DRIVER_UNAVAILABLE
