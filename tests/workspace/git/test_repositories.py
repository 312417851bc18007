"""Repositories: created once, imported, replaced only while empty, pushed back when asked."""

import os
import shutil
import sys
import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from core.actors import System
from core.database import in_transaction
from core.decision import Code, Denied
from ledger.models import Event
from nexus_site.run.processes import lives
from orgchart import services
from orgchart.models import Organisation
from tests.company import load_company
from tests.concurrency import at_once
from tests.patience import wait_until
from tests.workspace.git.web_servers import BY_HTTP, endless_server, plain_server
from tests.workspace.git.world import BRANCH, ensure_repositories, needs_walls, run_git
from workspace.git import (
    foreign_repository,
    garbage,
    importing,
    pushing_back,
    repositories,
    running,
    worktree,
)
from workspace.git.bare_repository import BareRepository, Signature, create_bare
from workspace.git.garbage import collect_garbage
from workspace.git.models import Branch, Draft, MoveKind, Repository
from workspace.git.pushing_back import push_back, push_back_due
from workspace.git.repositories import bare_of, create_repositories, ensure_repository
from workspace.git.running import MACHINE_IS_FULL, GitFailed
from workspace.git.worktree import AgentWorkTree
from workspace.homes import usage_of
from workspace.tree import work_tree


@pytest.fixture
def other(tmp_path):
    """A repository of somebody else, with a hook of its own and a second branch."""
    work = tmp_path / "work"
    run_git("init", "--quiet", "--initial-branch=trunk", str(work))
    (work / "app.py").write_text("app = 1\n")
    run_git("add", ".", cwd=work)
    me = ("-c", "user.name=x", "-c", "user.email=x@x")
    run_git(*me, "commit", "-qm", "first", cwd=work)
    run_git("branch", "side", cwd=work)
    bare = tmp_path / "other.git"
    run_git("clone", "--quiet", "--bare", str(work), str(bare))
    return bare


def pushed_back_by_system(company):
    """Push the only repository back to where it came from."""
    return push_back(
        repository_id=Repository.objects.get().id,
        reason="back",
        caller=System(name="git", organisation_id=company.organisation.id),
        now=timezone.now(),
    )


def commit_file(work, bare, content):
    """Add a file to the main branch of the other repository."""
    (work / "large").write_bytes(content)
    run_git("add", ".", cwd=work)
    run_git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "large", cwd=work)
    run_git("push", "--quiet", str(bare), "trunk", cwd=work)


def set_repository(value):
    call_command("org", "set", "nexus", f"repository={value}")


def prepared(nexus):
    return list(bare_of(nexus.organisation).folder.parent.glob("*import-*"))


REPORTING = """
import sys
send = lambda *lines: [print(f"{{len(each) + 4:04x}}{{each}}", end="") for each in lines]
send("{} refs/heads/trunk\\0report-status")
print("0000", end="", flush=True)
sys.stdin.buffer.read()
send("unpack ok", "ok refs/heads/trunk")
for number in range(100):
    send("ok refs/heads/trunk", "option refname refs/heads/" + "x" * 60_000)
print("0000", end="", flush=True)
"""
"""The other side of a push, at the commit that is filled in."""
KINDS = ("100644 blob", *["040000 tree"] * 9)


class TestCreate:
    def test_creates_one_where_coding_is_enabled_and_once(self, nexus):
        assert create_repositories(now=timezone.now()) == ["nexus"]
        assert create_repositories(now=timezone.now()) == []
        bare = bare_of(nexus.organisation)
        assert bare.commit_at("refs/heads/main") == Branch.objects.get().commit
        assert Event.objects.filter(action="repository.created").count() == 1

    def test_leaves_out_organisations_without_coding(self, nexus):
        Organisation.objects.update(settings={})
        assert create_repositories(now=timezone.now()) == []
        assert not Repository.objects.exists()

    def test_leaves_an_import_to_the_first_call_of_git(self, nexus, tmp_path):
        """At the start its source would keep everyone waiting, where it does not answer."""
        set_repository(tmp_path / "none.git")
        assert create_repositories(now=timezone.now()) == []
        assert not Repository.objects.exists()


def leading_to(written, way, source):
    """A repository that has its files, or some of them, where an agent wrote them."""
    if way == "the path":
        return written
    if way == "a link":
        source.symlink_to(written)
    elif way == "a file that names it":
        source.mkdir()
        (source / ".git").write_text(f"gitdir: {written}\n")
    elif way == "a common folder":
        (source / ".git").mkdir(parents=True)
        (source / ".git/HEAD").write_text("ref: refs/heads/trunk\n")
        (source / ".git/commondir").write_text(f"{written}\n")
    elif way == "alternates":
        shutil.copytree(written, source)
        (source / "objects/info/alternates").write_text(f"{written}/objects\n")
    return source


class TestImport:
    def test_takes_the_default_branch_and_nothing_else(self, nexus, other):
        set_repository(other)
        ensure_repositories(now=timezone.now())
        row = Repository.objects.get()
        assert (row.main, row.source) == ("trunk", str(other))
        bare = bare_of(nexus.organisation)
        assert bare.run("for-each-ref", "--format=%(refname)").decode().split() == [
            "refs/heads/trunk"
        ]
        assert b"other.git" not in (bare.folder / "config").read_bytes()
        assert (bare.folder / "hooks/pre-receive").exists()

    def test_trusts_only_the_repository_that_is_imported(self, nexus, other):
        """Git opens a folder of another user only where it is told to: for one command, once."""
        for path in (other, *other.rglob("*")):
            os.chown(path, 12_345, 12_345)
        assert running.run_git(["-C", str(other), "rev-parse", "HEAD"]).returncode == 128
        set_repository(other)
        ensure_repositories(now=timezone.now())
        assert Repository.objects.get().main == "trunk"

    def test_replaces_one_that_nobody_pushed_to(self, nexus, other):
        ensure_repositories(now=timezone.now())
        set_repository(other)
        assert Repository.objects.get().main == "trunk"

    def test_that_fails_changes_nothing(self, nexus, tmp_path):
        ensure_repositories(now=timezone.now())
        with pytest.raises(CommandError, match="cannot be imported"):
            set_repository(tmp_path / "none.git")
        assert Organisation.objects.get().settings.get("repository", "") == ""
        row = Repository.objects.get()
        assert bare_of(nexus.organisation).commit_at("refs/heads/main") == row.branches.get().commit

    def test_ends_where_it_takes_more_than_the_installation_allows(
        self, nexus, other, tmp_path, settings
    ):
        ensure_repositories(now=timezone.now())
        settings.REPOSITORY_BYTES = 1_000_000
        commit_file(tmp_path / "work", other, os.urandom(1_500_000))
        with pytest.raises(CommandError, match="more than 1000000 bytes"):
            set_repository(other)
        assert prepared(nexus) == []

    @pytest.mark.parametrize("name", ["m" * 201, "ma\u202ein", b"ma\xffin"])
    def test_takes_no_main_branch_whose_name_cannot_be_kept_or_shown(self, nexus, other, name):
        ensure_repositories(now=timezone.now())
        run_git("--git-dir", str(other), "branch", "-m", "trunk", name)
        with pytest.raises(CommandError, match="name is long, hidden"):
            set_repository(other)
        assert Repository.objects.get().source == ""

    def test_takes_no_main_branch_that_git_may_read_as_an_option(self, nexus, other):
        ensure_repositories(now=timezone.now())
        run_git("--git-dir", str(other), "update-ref", "refs/heads/-x", "HEAD")
        run_git("--git-dir", str(other), "symbolic-ref", "HEAD", "refs/heads/-x")
        with pytest.raises(CommandError, match="or an option"):
            set_repository(other)

    def test_looks_at_its_size_while_it_comes(self, tmp_path):
        """What git began ends with it."""

        def watch():
            raise GitFailed("clone", 0, b"too much")

        words = ["-c", f"alias.wait=!sleep 3; touch {tmp_path}/ran", "wait"]
        with pytest.raises(GitFailed, match="too much"):
            running.run_git(words, seconds=50, watch=watch)
        time.sleep(3)
        assert not (tmp_path / "ran").exists()

    def test_takes_no_history_that_is_cut_off(self, nexus, other):
        """The repository of drafts does not know where, and would never be packed again."""
        work, shallow = other.with_name("work"), other.with_name("shallow.git")
        me = ("-c", "user.name=x", "-c", "user.email=x@x")
        run_git(*me, "commit", "--allow-empty", "-qm", "second", cwd=work)
        run_git("clone", "--quiet", "--bare", "--depth=1", f"file://{work}", str(shallow))
        ensure_repositories(now=timezone.now())
        with pytest.raises(CommandError, match="source repository is shallow"):
            set_repository(shallow)

    def test_takes_no_commits_that_the_repository_of_drafts_cannot_name(self, nexus, tmp_path):
        work = tmp_path / "sha256"
        run_git("init", "--quiet", "--object-format=sha256", str(work))
        me = ("-c", "user.name=x", "-c", "user.email=x@x")
        run_git(*me, "commit", "--allow-empty", "-qm", "first", cwd=work)
        ensure_repositories(now=timezone.now())
        with pytest.raises(CommandError, match="SHA-256 names"):
            set_repository(work)

    def test_leaves_no_program_that_git_began_and_did_not_wait_for(self):
        """As the one that speaks https, where git has failed and the other machine is silent."""
        begun = "alias.begin=!sleep 600 >/dev/null 2>&1 & echo $!"
        pid = int(running.run_git(["-c", begun, "begin"]).stdout)
        wait_until(lambda: not lives(pid))

    def test_keeps_no_complaints_without_end(self):
        """Another machine writes what git says of errors."""
        with pytest.raises(GitFailed, match="complains without an end"):
            running.run_git(["-c", "alias.flood=!yes no >&2", "flood"], seconds=20)

    @pytest.mark.parametrize(("folders", "is_taken"), [(63, True), (64, False)])
    def test_takes_only_paths_that_agents_may_write(
        self, nexus, other, tmp_path, folders, is_taken
    ):
        """To remove a checkout, each folder is entered from the one around it."""
        ensure_repositories(now=timezone.now())
        deep = tmp_path / "work" / "/".join("d" * folders)
        deep.mkdir(parents=True)
        (deep / "file").write_text("deep")
        commit_file(tmp_path / "work", other, b"and another")
        if is_taken:
            set_repository(other)
        else:
            with pytest.raises(CommandError, match="a file lies in too many folders"):
                set_repository(other)
            assert prepared(nexus) == []

    @pytest.mark.parametrize(
        ("name", "is_taken"),
        [("n" * 255, True), ("n" * 256, False), ("名" * 85, True), ("名" * 86, False),
         ('\\"\t' * 85, True), ("/".join(["名" * 80] * 5), True)],
        ids=["255", "256", "of 85 signs", "of 86", "that git quotes", "in a long path"],
    )  # fmt: skip
    def test_takes_only_names_that_files_have(self, nexus, other, name, is_taken):
        """No agent could check a branch out of it."""
        there = BareRepository(other)
        tree = there.run("hash-object", "-w", "--stdin", stdin=b"text").decode().strip()
        for kind, part in zip(KINDS, name.split("/")[::-1], strict=False):
            entry = f"{kind} {tree}\t{part}\0".encode()
            tree = there.run("mktree", "-z", stdin=entry).decode().strip()
        who = Signature(name="x", email="x@x", at=timezone.now())
        there.set_ref("refs/heads/trunk", there.commit(tree, [], "names", who))
        ensure_repositories(now=timezone.now())
        if is_taken:
            set_repository(other)
        else:
            with pytest.raises(CommandError, match="the name of a file is too long"):
                set_repository(other)

    @pytest.mark.parametrize(("setting", "most"), [("BYTES", 1_000_000), ("FILES", 1)])
    def test_takes_only_files_that_fit_into_a_home(
        self, nexus, other, tmp_path, settings, setting, most
    ):
        """A small repository may hold huge files."""
        ensure_repositories(now=timezone.now())
        setattr(settings, f"WORKSPACE_{setting}", most)
        commit_file(tmp_path / "work", other, bytes(1_500_000))
        with pytest.raises(CommandError, match="do not fit into an agent's home"):
            set_repository(other)
        assert prepared(nexus) == []
        setattr(settings, f"WORKSPACE_{setting}", 10 * most + 1_000_000)
        set_repository(other)

    def test_takes_only_files_that_git_can_write_there(self, nexus, other, tmp_path, monkeypatch):
        """No agent could ever check its branch out, and each would wait for room on a disk."""
        ensure_repositories(now=timezone.now())
        monkeypatch.setattr(worktree, "LIMITS", replace(worktree.LIMITS, file=1_000_000))
        commit_file(tmp_path / "work", other, bytes(1_000_001))
        with pytest.raises(CommandError, match="one of its files is over 1000000 bytes"):
            set_repository(other)
        assert prepared(nexus) == []
        commit_file(tmp_path / "work", other, bytes(1_000_000))
        set_repository(other)

    @pytest.mark.parametrize(
        ("way", "said"),
        [
            ("folders", "do not fit into an agent's home"),
            ("a path", "a file is too long|largePathname"),  # the newest git itself refuses it
        ],
    )
    def test_counts_without_end_neither_folders_nor_names(self, nexus, other, way, said):
        """Folders within folders lead to a billion empty ones; a name may have megabytes."""
        ensure_repositories(now=timezone.now())
        bare = BareRepository(other)
        if way == "folders":
            tree = bare.run("mktree").decode().strip()
            for _ in range(9):
                names = "".join(f"040000 tree {tree}\t{at}\n" for at in range(10))
                tree = bare.run("mktree", stdin=names.encode()).decode().strip()
        else:
            blob = bare.run("hash-object", "-w", "--stdin").decode().strip()
            line = f"100644 blob {blob}\t{'x' * 5_000_000}\n"
            tree = bare.run("mktree", stdin=line.encode()).decode().strip()
        who = Signature(name="x", email="x@x.invalid", at=timezone.now())
        bare.set_ref("refs/heads/trunk", bare.commit(tree, [], "x", who))
        with pytest.raises(CommandError, match=said):
            set_repository(other)

    def test_takes_no_tree_that_was_not_counted_to_its_end(self, nexus):
        ensure_repositories(now=timezone.now())
        with pytest.raises(GitFailed, match="not counted"):
            bare_of(nexus.organisation).size("1" * 40, 10, 10, 10)

    @pytest.mark.parametrize(
        "way", ["the path", "a link", "a file that names it", "a common folder", "alternates"]
    )
    def test_runs_nothing_of_a_repository_that_an_agent_wrote(self, nexus, other, tmp_path, way):
        """Git runs the command that the configuration of a repository with alternates names."""
        ensure_repositories(now=timezone.now())
        written = work_tree("nexus", "backend_worker") / "src"
        shutil.copytree(other, written)
        (written / "objects/info/alternates").write_text(f"{other}/objects\n")
        run_git("config", "core.alternateRefsCommand", f"touch {tmp_path}/ran; :", cwd=written)
        source = leading_to(written, way, tmp_path / "source")
        with pytest.raises(CommandError, match="among the files of this installation"):
            set_repository(source)
        Repository.objects.update(source=str(source))
        with pytest.raises(Denied, match="among the files of this installation"):
            pushed_back_by_system(nexus)
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("part", ["refs", "refs/heads", "objects/pack", "packed-refs"])
    def test_takes_no_parts_of_our_repositories_for_those_of_another(
        self, nexus, other, part, settings
    ):
        """A person could read another organisation's files, and a push change its branches."""
        ensure_repositories(now=timezone.now())
        run_git("pack-refs", "--all", "--no-prune", cwd=other)
        ours = settings.WORKSPACE_ROOT / "another" / "repository.git" / part
        ours.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(other / part, ours)
        (other / part).symlink_to(ours)
        with pytest.raises(CommandError, match="leads to another place"):
            set_repository(other)
        Repository.objects.update(source=str(other))
        with pytest.raises(Denied, match="leads to another place"):
            pushed_back_by_system(nexus)

    @pytest.mark.parametrize("way", ["a file that names it", "alternates"])
    @pytest.mark.parametrize("sign", ['"', "\n", "\u2028", "\t", "\\"])
    def test_follows_a_path_with_any_sign_in_its_name(
        self, nexus, other, tmp_path, settings, way, sign
    ):
        """Git writes some in another way, and some would end a line."""
        ensure_repositories(now=timezone.now())
        ours = settings.WORKSPACE_ROOT / "another" / "pack"
        ours.mkdir(parents=True)
        odd, source = tmp_path / f"a{sign}b", other
        shutil.copytree(other, odd)
        shutil.rmtree(odd / "objects/pack")
        (odd / "objects/pack").symlink_to(ours)
        if way == "alternates":
            quoted = str(odd).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            (source / "objects/info/alternates").write_text(f'"{quoted}/objects"\n')
        else:
            source = tmp_path / "named"
            source.mkdir()
            (source / ".git").write_text(f"gitdir: {odd}\n")
        with pytest.raises(CommandError, match=r"leads to another place|has odd signs"):
            set_repository(source)

    def test_takes_a_repository_whose_links_stay_inside(self, nexus, other):
        ensure_repositories(now=timezone.now())
        (other / "refs/heads/alias").symlink_to("trunk")
        set_repository(other)
        assert Repository.objects.get().source == str(other)

    def test_leaves_no_folder_behind(self, nexus, other, tmp_path):
        ensure_repositories(now=timezone.now())
        set_repository(other)
        with pytest.raises(CommandError, match="cannot be imported"):
            set_repository(tmp_path / "none.git")
        assert prepared(nexus) == []

    def test_is_recorded_in_a_transaction_that_it_does_not_wait_in(self, nexus, other, monkeypatch):
        ensure_repositories(now=timezone.now())
        open_meanwhile = []

        def watched(*words, **options):
            open_meanwhile.append(in_transaction())
            return running.run_git(*words, **options)

        monkeypatch.setattr(importing, "run_git", watched)
        set_repository(other)
        Repository.objects.all().delete()
        ensure_repositories(now=timezone.now())
        assert open_meanwhile == [False, False]

    @needs_walls
    def test_is_refused_where_agents_pushed_meanwhile(self, hands, nexus, other, monkeypatch):
        ensure_repositories(now=timezone.now())
        row = Repository.objects.get()

        def cloned(*words, **options):
            hands.hire()
            hands.pushed()
            return running.run_git(*words, **options)

        monkeypatch.setattr(importing, "run_git", cloned)
        with pytest.raises(CommandError, match="agents have begun work"):
            set_repository(other)
        assert Organisation.objects.get().settings.get("repository", "") == ""
        assert Repository.objects.get().id == row.id
        assert prepared(nexus) == []

    def test_is_refused_where_another_was_created_meanwhile(self, nexus, other, monkeypatch):
        original = services.change_policy

        def changed(**change):
            ensure_repositories(now=timezone.now())
            return original(**change)

        monkeypatch.setattr(services, "change_policy", changed)
        with pytest.raises(CommandError, match="created meanwhile"):
            set_repository(other)
        assert Organisation.objects.get().settings.get("repository", "") == ""

    def test_takes_what_the_setting_names_when_it_is_recorded(self, nexus, other, monkeypatch):
        original = importing._create

        def created(*place):
            monkeypatch.setattr(importing, "_create", original)
            set_repository(other)
            return original(*place)

        monkeypatch.setattr(importing, "_create", created)
        ensure_repositories(now=timezone.now())
        row = Repository.objects.get()
        assert (row.main, row.source) == ("trunk", str(other))
        assert bare_of(nexus.organisation).commit_at("refs/heads/trunk")
        assert prepared(nexus) == []

    @pytest.mark.parametrize("kept", ["before it is moved", "old one moved aside"])
    def test_is_put_in_its_place_after_a_crash(self, nexus, other, monkeypatch, kept):
        ensure_repositories(now=timezone.now())
        bare = bare_of(nexus.organisation).folder

        def died(_):
            if kept == "old one moved aside":
                bare.rename(bare.with_name("repository-x.old"))
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(repositories, "put_in_place", died)
            with pytest.raises(KeyboardInterrupt):
                set_repository(other)
        assert Repository.objects.get().main == "trunk"
        caller = System(name="git", organisation_id=nexus.organisation.id)
        ensure_repository(organisation=nexus.organisation, caller=caller, now=timezone.now())
        assert bare_of(nexus.organisation).commit_at("refs/heads/trunk")
        assert prepared(nexus) == []

    def test_takes_no_tree_that_git_makes_no_files_of(self, nexus, other, monkeypatch, tmp_path):
        """Git checks none of what comes from a plain web server, which has single files."""
        there = BareRepository(other)
        blob = there.run("hash-object", "-w", "--stdin", stdin=b"text").decode().strip()
        content = b"100644 ..\0" + bytes.fromhex(blob)
        words = ("hash-object", "-w", "-t", "tree", "--literally", "--stdin")
        tree = there.run(*words, stdin=content).decode().strip()
        who = Signature(name="x", email="x@x", at=timezone.now())
        there.set_ref("refs/heads/trunk", there.commit(tree, [], "bad", who))
        there.run("update-server-info")
        monkeypatch.setattr(importing, "environment_for", lambda _: BY_HTTP)
        with (
            plain_server(other) as url,
            pytest.raises(Denied, match=r"invalid path '\.\.'"),
        ):
            importing._clone(tmp_path / "clone", url, nexus.organisation)

    @pytest.mark.parametrize(
        ("netrc", "opens"),
        [
            ("machine 127.0.0.1 login bot password token", True),
            ("machine elsewhere login bot password token", False),
            ("", False),
        ],
    )
    def test_opens_a_private_one_by_the_password_in_the_operators_home(
        self, nexus, other, monkeypatch, tmp_path, netrc, opens
    ):
        """As docs/production.md says."""
        BareRepository(other).run("update-server-info")
        (tmp_path / ".netrc").write_text(netrc)
        monkeypatch.setenv("HOME", str(tmp_path))
        told = importing.environment_for
        monkeypatch.setattr(importing, "environment_for", lambda at: told(at) | BY_HTTP)
        with plain_server(other, password="bot:token") as url:
            if opens:
                importing._clone(tmp_path / "clone", url, nexus.organisation)
            else:
                with pytest.raises(Denied, match="could not read Username"):
                    importing._clone(tmp_path / "clone", url, nexus.organisation)

    @pytest.mark.parametrize("has_work", [False, True])
    def test_keeps_what_it_replaces_only_where_agents_work_is_in_it(self, nexus, other, has_work):
        """Of a database that was lost: where none was, each change would stay on the disk."""
        ensure_repositories(now=timezone.now())
        bare = bare_of(nexus.organisation)
        if has_work:
            bare.set_ref("refs/heads/feat/x", bare.commit_at("refs/heads/main"))
        os.utime(bare.folder, (0, 0))
        set_repository(other)
        (aside,) = bare.folder.parent.glob("repository-*")
        collect_garbage(now=timezone.now())
        assert aside.exists()
        os.utime(aside, (0, 0))
        Repository.objects.update(packed_at=None)
        collect_garbage(now=timezone.now())
        assert aside.exists() == has_work

    def test_is_put_in_its_place_where_nobody_calls_for_a_day(self, nexus, other, monkeypatch):
        """The prepared folder is the only one that has its commits: it is not deleted as unused."""
        ensure_repositories(now=timezone.now())

        def died(_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(repositories, "put_in_place", died)
            with pytest.raises(KeyboardInterrupt):
                set_repository(other)
        (left,) = prepared(nexus)
        os.utime(left, (0, 0))
        collect_garbage(now=timezone.now())
        assert bare_of(nexus.organisation).commit_at("refs/heads/trunk")
        assert prepared(nexus) == []

    def test_never_puts_an_old_folder_in_the_place_of_a_repository_at_work(self, nexus, other):
        set_repository(other)
        ensure_repositories(now=timezone.now())
        bare = bare_of(nexus.organisation)
        commit = bare.commit_at("refs/heads/trunk")
        left = bare.folder.with_name(f"import-{commit}-0.git")
        shutil.copytree(bare.folder, left)
        bare.set_ref("refs/heads/mine", commit)
        caller = System(name="git", organisation_id=nexus.organisation.id)
        ensure_repository(organisation=nexus.organisation, caller=caller, now=timezone.now())
        assert bare.commit_at("refs/heads/mine")
        assert left.exists()
        os.utime(left, (0, 0))
        collect_garbage(now=timezone.now())
        assert prepared(nexus) == []

    @pytest.mark.parametrize("value", ["ext::sh -c id", "--upload-pack=id", "file:///x", "a/b"])
    def test_takes_no_other_transport(self, nexus, value):
        with pytest.raises(CommandError, match="repository"):
            set_repository(value)

    @needs_walls
    def test_does_not_replace_one_with_work_in_it(self, hands, other):
        hands.hire()
        hands.pushed()
        with pytest.raises(CommandError, match="agents have begun work"):
            set_repository(other)
        assert hands.tip("main")

    @needs_walls
    @pytest.mark.parametrize("is_committed", [False, True])
    def test_does_not_replace_one_of_whose_commits_agents_made_drafts(
        self, hands, other, is_committed
    ):
        """They could never be pushed, and `git gc` of the drafts would fail for ever."""
        hands.hire()
        assert hands.branch().status == 200
        if is_committed:
            hands.write("src/search/index.py")
            assert hands.commit("src/search/index.py").status == 200
        with pytest.raises(CommandError, match="agents have begun work"):
            set_repository(other)
        hands.write("src/search/more.py")
        assert hands.commit("src/search/more.py").status == 200
        assert hands.push().status == 200
        collect_garbage(now=timezone.now())

    @needs_walls
    def test_is_not_checked_out_where_another_took_its_place_meanwhile(
        self, hands, other, monkeypatch
    ):
        hands.hire()
        ensure_repositories(now=timezone.now())
        check_out = AgentWorkTree.check_out

        def replaced(*words):
            check_out(*words)
            set_repository(other)

        monkeypatch.setattr(AgentWorkTree, "check_out", replaced)
        refused = hands.branch()
        assert refused.code == "INVALID_TRANSITION"
        assert "nothing was changed" in refused.body["message"]
        monkeypatch.undo()
        assert not Draft.objects.exists()
        assert hands.branch().status == 200


@pytest.mark.django_db(transaction=True)
class TestTwoAtOnce:
    @pytest.fixture
    def nexus(self, transactional_db):
        return load_company("nexus")

    def test_import_one_after_the_other(self, nexus, other, tmp_path):
        second = tmp_path / "second.git"
        run_git("clone", "--quiet", "--bare", str(other), str(second))
        ensure_repositories(now=timezone.now())
        sources = [other, second, other, second]
        at_once([lambda each=each: set_repository(each) for each in sources])
        row = Repository.objects.get()
        assert row.source == Organisation.objects.get().settings["repository"]
        assert bare_of(nexus.organisation).commit_at("refs/heads/trunk") == row.pushed_back
        assert prepared(nexus) == []

    def test_create_one(self, nexus, other):
        def ensure():
            caller = System(name="git", organisation_id=nexus.organisation.id)
            ensure_repository(organisation=nexus.organisation, caller=caller, now=timezone.now())

        at_once([ensure] * 4)
        row = Repository.objects.get()
        assert bare_of(nexus.organisation).commit_at("refs/heads/main") == row.branches.get().commit
        assert Event.objects.filter(action="repository.created").count() == 1
        assert prepared(nexus) == []


class TestACommitWhoseAnswerIsLost:
    """As in a failover: the row is there, and who inserted it cannot know that."""

    @pytest.fixture
    def nexus(self, transactional_db):
        return load_company("nexus")

    @pytest.fixture
    def lose_the_answer(self, monkeypatch):
        """Let the connection end once the commit of a repository's row is made."""
        insert, commit, armed = repositories._insert_repository, BaseDatabaseWrapper._commit, []

        def inserted(*given):
            armed.append(1)
            return insert(*given)

        def committed(connection):
            commit(connection)
            if armed:
                armed.clear()
                raise OperationalError from psycopg.OperationalError("terminating connection")

        def lose():
            monkeypatch.setattr(repositories, "_insert_repository", inserted)
            monkeypatch.setattr(BaseDatabaseWrapper, "_commit", committed)

        return lose

    @pytest.mark.parametrize("what", ["created", "imported"])
    def test_leaves_the_repository_that_the_row_names(self, nexus, other, lose_the_answer, what):
        def make():
            if what == "imported":
                set_repository(other)
            else:
                ensure_repositories(now=timezone.now())

        if what == "imported":
            ensure_repositories(now=timezone.now())
        lose_the_answer()
        with pytest.raises(OperationalError):
            make()
        row = Repository.objects.get()
        caller = System(name="git", organisation_id=nexus.organisation.id)
        ensure_repository(organisation=nexus.organisation, caller=caller, now=timezone.now())
        main = row.branches.get()
        assert bare_of(nexus.organisation).commit_at(f"refs/heads/{main.name}") == main.commit
        assert prepared(nexus) == []


class TestARepositoryWhoseFolderIsGone:
    """The jobs go on with those of other organisations."""

    @pytest.fixture
    def next_one(self, nexus, other, monkeypatch):
        """The second of two organisations with a merge to push back; the first has no folder."""
        as_merge = SimpleNamespace(MERGE=MoveKind.IMPORT)  # a merge needs a verdict and its agents
        monkeypatch.setattr(pushing_back, "MoveKind", as_merge)
        for company in (nexus, load_company("dev-team")):
            organisation = company.organisation
            organisation.settings |= {"repository": str(other), "repository_push": "after_merge"}
            organisation.save()
            caller = System(name="git", organisation_id=organisation.id)
            ensure_repository(organisation=organisation, caller=caller, now=timezone.now())
        Repository.objects.update(pushed_back="0" * 40)
        shutil.rmtree(bare_of(nexus.organisation).folder)
        return Repository.objects.get(organisation=organisation)

    def test_keeps_no_other_from_being_pushed_back(self, next_one):
        assert push_back_due(now=timezone.now()) == 1
        next_one.refresh_from_db()
        assert next_one.pushed_back == next_one.branches.get().commit

    def test_is_named_to_a_person_who_pushes_it_back(self, next_one, nexus):
        row = Repository.objects.get(organisation=nexus.organisation)
        with pytest.raises(Denied, match="the folder of the repository of nexus is missing"):
            push_back(
                repository_id=row.id, reason="x", now=timezone.now(), caller=nexus.person("Board")
            )

    def test_keeps_no_other_from_being_packed(self, next_one, monkeypatch):
        tried = []

        def vanished(place):
            tried.append(place)
            raise FileNotFoundError(place)

        monkeypatch.setattr(importing, "remove_old", vanished)
        collect_garbage(now=timezone.now())
        assert len(tried) == 2

    def test_is_packed_again_alone(self, next_one, nexus):
        """Packing takes minutes of a large repository: once a day, whatever fails elsewhere."""
        now = timezone.now()
        collect_garbage(now=now)
        packed = dict(Repository.objects.values_list("organisation", "packed_at"))
        again = now - timedelta(hours=23)
        assert packed == {nexus.organisation.id: again, next_one.organisation_id: now}
        later = now + timedelta(hours=1)
        collect_garbage(now=later)
        packed = dict(Repository.objects.values_list("organisation", "packed_at"))
        assert packed == {
            nexus.organisation.id: again + timedelta(hours=1),
            next_one.organisation_id: now,
        }
        collect_garbage(now=now + timedelta(days=1))
        next_one.refresh_from_db()
        assert next_one.packed_at == now + timedelta(days=1)

    def test_leaves_the_rest_to_the_next_run(self, next_one, nexus, monkeypatch):
        """Notices wait for the same thread of a small worker."""
        monkeypatch.setattr(garbage, "BUDGET", -1)
        for packed in (1, 2):
            collect_garbage(now=timezone.now())
            assert Repository.objects.exclude(packed_at=None).count() == packed


class TestASourceThatHangs:
    """Its organisation's pushes wait, not those of others (Spec: hands 22)."""

    @pytest.fixture
    def pushes(self, nexus, other, monkeypatch):
        """Who was pushed for how long; the first of two organisations' sources never answers."""
        as_merge = SimpleNamespace(MERGE=MoveKind.IMPORT)
        monkeypatch.setattr(pushing_back, "MoveKind", as_merge)
        for company in (nexus, load_company("dev-team")):
            organisation = company.organisation
            organisation.settings |= {"repository": str(other), "repository_push": "after_merge"}
            organisation.save()
            caller = System(name="git", organisation_id=organisation.id)
            ensure_repository(organisation=organisation, caller=caller, now=timezone.now())
        Repository.objects.update(pushed_back="0" * 40)
        asked = []

        def hang(*, repository_id, seconds, **_):
            row = Repository.objects.get(pk=repository_id)
            asked.append((row.organisation.slug, seconds))
            if row.organisation == nexus.organisation:
                clock.time += seconds
                raise GitFailed("push", None, b"no answer")
            row.pushed_back = row.branches.get().commit
            row.save()

        class Clock:
            time = 0.0

            def monotonic(self):
                return self.time

        clock = Clock()
        monkeypatch.setattr(pushing_back.time, "monotonic", clock.monotonic)
        monkeypatch.setattr(pushing_back, "push_back", hang)
        return asked

    def test_gets_more_time_and_comes_later_and_later(self, pushes):
        now, begun = timezone.now(), timezone.now()
        for _ in range(6 * 60):
            push_back_due(now=now)
            now += timedelta(minutes=1)
        times = [seconds for slug, seconds in pushes if slug == "nexus"]
        assert times[:6] == [20, 40, 80, 160, 300, 300]
        assert len(times) < 20
        assert Repository.objects.get(organisation__slug="nexus").push_due_at > begun

    def test_takes_no_turn_of_another(self, pushes):
        """It is left alone for longer than it took, and the others are pushed at once."""
        now = timezone.now()
        push_back_due(now=now)
        assert {slug for slug, _ in pushes} == {"nexus", "dev-team"}
        pushes.clear()
        Repository.objects.filter(organisation__slug="dev-team").update(
            pushed_back="0" * 40, push_due_at=None
        )
        assert push_back_due(now=now + timedelta(seconds=45)) == 1
        assert [slug for slug, _ in pushes] == ["dev-team"]

    def test_is_claimed_by_one_worker(self, pushes):
        claimed = {row.pk for _ in range(2) for row in pushing_back._claim(timezone.now())}
        assert claimed == set(Repository.objects.values_list("pk", flat=True))
        assert pushing_back._claim(timezone.now()) == []

    def test_holds_few_threads_of_a_process(self, nexus, other):
        """People's pages have four: a repository that never answers must not take them all."""
        ensure_repositories(now=timezone.now())
        busy = pytest.raises(CommandError, match="others wait for their repositories")
        with foreign_repository.turn(-1, ""), foreign_repository.turn(-2, ""), busy:
            set_repository(other)
        set_repository(other)

    def test_holds_one_thread_for_an_organisation(self, nexus, other):
        """Its agents and people ask again and again where its repository never answers."""
        ensure_repositories(now=timezone.now())
        busy = pytest.raises(CommandError, match="others wait for their repositories")
        with foreign_repository.turn(nexus.organisation.id, ""), busy:
            set_repository(other)
        with foreign_repository.turn(load_company("dev-team").organisation.id, ""):
            set_repository(other)

    @pytest.mark.parametrize("answer", ["none", "an error", "that no program starts"])
    def test_is_left_alone_for_as_long_as_it_was_waited_for(
        self, nexus, other, monkeypatch, answer
    ):
        """Its agents ask again and again: others would never have a turn in their process."""
        ensure_repositories(now=timezone.now())
        clock = SimpleNamespace(now=1000.0)
        monkeypatch.setattr(
            foreign_repository, "time", SimpleNamespace(monotonic=lambda: clock.now)
        )

        def slow(words, **_):
            clock.now += 100
            if answer == "none":
                raise GitFailed("clone", None, b"no answer within 100 s")
            if answer == "that no program starts":  # the other machine can say this of itself
                raise Denied(MACHINE_IS_FULL)
            return SimpleNamespace(returncode=128, stdout=b"", stderr=b"Connection timed out")

        said = "cannot be imported|can start no more programs"
        silent, vain = str(other), pytest.raises(CommandError, match=said)
        with monkeypatch.context() as patched, vain:
            patched.setattr(importing, "run_git", slow)
            set_repository(silent)
        with pytest.raises(CommandError, match="waited for in vain"):
            set_repository(silent)
        another = other.with_name("another.git")
        shutil.copytree(other, another)
        set_repository(another)
        clock.now += 101
        set_repository(silent)

    def test_that_failed_at_once_is_asked_again(self, nexus, other):
        ensure_repositories(now=timezone.now())
        with pytest.raises(CommandError, match="cannot be imported"):
            set_repository(other.with_name("missing.git"))
        shutil.copytree(other, other.with_name("missing.git"))
        set_repository(other.with_name("missing.git"))


@needs_walls
class TestPushBack:
    def merged(self, hands):
        contract = hands.hire()
        hands.pushed()
        hands.submit(contract)
        hands.judge(contract)
        hands.lead()
        assert hands.review(approve=True).status == 200

    def at(self, other):
        return run_git("--git-dir", str(other), "rev-parse", "trunk")

    def test_waits_for_a_person(self, hands, other):
        set_repository(other)
        before = self.at(other)
        self.merged(hands)
        assert push_back_due(now=timezone.now()) == 0
        assert self.at(other) == before
        row = Repository.objects.get()
        done = push_back(
            repository_id=row.id, reason="release", now=timezone.now(),
            caller=hands.company.person("Board"),
        )  # fmt: skip
        assert self.at(other) == done == hands.tip("trunk")
        assert Event.objects.filter(action="repository.pushed_back").count() == 1

    def test_of_who_has_left_is_refused_before_it_pushes_and_recorded_after(
        self, hands, other, monkeypatch
    ):
        """Spec: people 68."""
        set_repository(other)
        before = self.at(other)
        self.merged(hands)
        gone = replace(hands.company.person("Board"), is_asked_again=True)
        push = {"repository_id": Repository.objects.get().id, "reason": "release", "caller": gone}
        with pytest.raises(Denied) as refused:
            push_back(**push, now=timezone.now())
        assert refused.value.deny.code == Code.NOT_YOURS
        assert self.at(other) == before
        monkeypatch.setattr(pushing_back, "require_still", lambda _: None)  # they leave after it
        done = push_back(**push, now=timezone.now())
        assert self.at(other) == done == hands.tip("trunk")
        assert Event.objects.filter(action="repository.pushed_back").count() == 1

    def test_is_done_again_where_the_other_repository_was_set_back(self, hands, other):
        """It was restored from a backup: the page said that the commit was there."""
        set_repository(other)
        before = self.at(other)
        self.merged(hands)
        for _ in range(2):
            done = push_back(
                repository_id=Repository.objects.get().id, reason="release", now=timezone.now(),
                caller=hands.company.person("Board"),
            )  # fmt: skip
            assert self.at(other) == done != before
            run_git("--git-dir", str(other), "update-ref", "refs/heads/trunk", before)

    @pytest.mark.parametrize("meanwhile", ["an older commit", "a later commit"])
    def test_is_recorded_where_another_push_ended_meanwhile(
        self, hands, other, monkeypatch, meanwhile
    ):
        """Another machine pushed what the main branch was before, or is now."""
        set_repository(other)
        self.merged(hands)
        bare, at_work = bare_of(hands.company.organisation), pushing_back._push
        main = hands.tip("trunk")
        another = hands.tip(BRANCH)
        if meanwhile == "a later commit":
            tree = bare.run("rev-parse", f"{main}^{{tree}}").decode("ascii").strip()
            who = Signature(name="a", email="a@b", at=timezone.now())
            another = bare.commit(tree, [main], "later", who)

        def slow(*given):
            at_work(*given)
            Repository.objects.update(pushed_back=another)

        monkeypatch.setattr(pushing_back, "_push", slow)
        push_back(
            repository_id=Repository.objects.get().id, reason="release", now=timezone.now(),
            caller=hands.company.person("Board"),
        )  # fmt: skip
        is_news = meanwhile == "an older commit"
        assert Repository.objects.get().pushed_back == (main if is_news else another)
        assert Event.objects.filter(action="repository.pushed_back").count() == is_news

    def test_follows_every_merge_where_the_setting_says_so(self, hands, other):
        set_repository(other)
        call_command("org", "set", "nexus", "repository_push=after_merge")
        assert push_back_due(now=timezone.now()) == 0
        self.merged(hands)
        assert push_back_due(now=timezone.now()) == 1
        assert push_back_due(now=timezone.now()) == 0
        assert self.at(other) == hands.tip("trunk")

    def test_keeps_nothing_that_the_other_server_has_git_fetch(self, hands, other, monkeypatch):
        """By WebDAV git asks for objects of branches that it does not push."""
        set_repository(other)
        self.merged(hands)
        row = Repository.objects.get()
        with endless_server("trunk", self.at(other)) as url:
            Repository.objects.update(source=url)
            monkeypatch.setattr(pushing_back, "environment_for", lambda _: BY_HTTP)
            with pytest.raises(Denied, match="sends more than it is asked for"):
                push_back(
                    repository_id=row.id, reason="release", now=timezone.now(), seconds=20,
                    caller=hands.company.person("Board"),
                )  # fmt: skip
        assert usage_of(bare_of(row.organisation).folder)[0] < pushing_back.MOST_FETCHED

    def test_keeps_no_report_without_end(self, hands, other, tmp_path, monkeypatch):
        """Git keeps, and prints, each line of what the other machine says of the push."""
        set_repository(other)
        self.merged(hands)
        script, printed, at_work = tmp_path / "receive-pack", [], pushing_back.run_git
        program = tmp_path / "reporting.py"
        program.write_text(REPORTING.format(self.at(other)))
        script.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{program}' \"$@\"\n")
        script.chmod(0o755)

        def seen(*words, **options):
            done = at_work(*words, **options)
            printed.append(len(done.stdout))
            return done

        monkeypatch.setattr(pushing_back, "other_side", lambda *_: str(script))
        monkeypatch.setattr(pushing_back, "run_git", seen)
        assert pushed_back_by_system(hands.company) == hands.tip("trunk")
        assert printed == [0]

    def test_runs_nothing_that_the_other_repository_names(self, hands, other, tmp_path):
        """Its hooks, and the command for the refs of repositories that lend it objects."""
        set_repository(other)
        self.merged(hands)
        hooks = ("pre-receive", "update", "post-receive", "post-update", "reference-transaction")
        (other / "hooks").mkdir(exist_ok=True)
        for name in hooks:
            (other / "hooks" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
            (other / "hooks" / name).chmod(0o755)
        lender = tmp_path / "lender.git"
        shutil.copytree(other, lender)
        (other / "objects/info/alternates").write_text(f"{lender}/objects\n")
        run_git("config", "core.alternateRefsCommand", f"touch {tmp_path}/ran-refs; :", cwd=other)
        done = push_back(
            repository_id=Repository.objects.get().id, reason="release", now=timezone.now(),
            caller=hands.company.person("Board"),
        )  # fmt: skip
        assert self.at(other) == done
        assert not [path.name for path in tmp_path.glob("ran-*")]

    def test_fetches_nothing_for_the_other_repository(self, hands, other, tmp_path):
        """A repository that says it lacks objects names the command that brings them."""
        set_repository(other)
        self.merged(hands)
        brings = tmp_path / "brings.sh"
        brings.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-fetch\nexit 1\n")
        brings.chmod(0o755)
        for name, value in {
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "far",
            "remote.far.promisor": "true",
            "remote.far.url": str(tmp_path / "work"),
            "remote.far.uploadPack": str(brings),
        }.items():
            run_git("config", name, value, cwd=other)
        tip = self.at(other)
        (other / "objects" / tip[:2] / tip[2:]).unlink()
        with pytest.raises(Denied, match="did not take the main branch"):
            push_back(
                repository_id=Repository.objects.get().id, reason="x", now=timezone.now(),
                caller=hands.company.person("Board"),
            )  # fmt: skip
        assert not (tmp_path / "ran-fetch").exists()

    def test_writes_no_files_of_a_work_tree(self, hands, tmp_path, other):
        """Filters that the other repository names would run for them."""
        work = tmp_path / "work"
        set_repository(work)
        self.merged(hands)
        run_git("config", "receive.denyCurrentBranch", "updateInstead", cwd=work)
        before = run_git("rev-parse", "trunk", cwd=work)
        with pytest.raises(Denied, match="did not take the main branch"):
            push_back(
                repository_id=Repository.objects.get().id, reason="x", now=timezone.now(),
                caller=hands.company.person("Board"),
            )  # fmt: skip
        assert run_git("rev-parse", "trunk", cwd=work) == before

    def test_never_overwrites_what_moved_on(self, hands, other, tmp_path):
        set_repository(other)
        self.merged(hands)
        tree = run_git("--git-dir", str(other), "rev-parse", "trunk^{tree}")
        moved = run_git("-c", "user.name=x", "-c", "user.email=x@x", "--git-dir", str(other),
                        "commit-tree", tree, "-p", "trunk", "-m", "theirs")  # fmt: skip
        run_git("--git-dir", str(other), "update-ref", "refs/heads/trunk", moved)
        with pytest.raises(Denied) as refusal:
            push_back(
                repository_id=Repository.objects.get().id, reason="x", now=timezone.now(),
                caller=hands.company.person("Board"),
            )  # fmt: skip
        assert refusal.value.deny.code is Code.INVALID_TRANSITION
        assert "(fetch first)" in str(refusal.value)  # why, in git's words
        assert self.at(other) == moved
        assert not Event.objects.filter(action="repository.pushed_back").exists()


def test_objects_are_lent_from_any_path(tmp_path):
    """Git ends a path at a colon, where an installation lies in a folder with one in its name."""
    place = tmp_path / 'a:b"c\\d'
    place.mkdir()
    who = Signature(name="a", email="a@b", at=timezone.now())
    lender = create_bare(place / "lender.git", "main")
    tree = lender.run("mktree").decode("ascii").strip()
    first = lender.commit(tree, [], "first", who)
    create_bare(place / "drafts.git", "main")
    drafts = BareRepository(place / "drafts.git", others=(lender.folder,))
    with drafts.quarantined() as kept_apart:
        second = kept_apart.commit(tree, [first], "second", who)
        assert kept_apart.is_ancestor(first, second)
