"""Repositories: created once, imported, replaced only while empty, pushed back when asked."""

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.decision import Code, Denied
from ledger.models import Event
from orgchart.models import Organisation
from tests.workspace.git.world import needs_walls, run_git
from workspace.git.models import Branch, Repository
from workspace.git.pushing_back import push_back, push_back_due
from workspace.git.repositories import bare_of, ensure_repositories


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


def set_repository(value):
    call_command("org", "set", "nexus", f"repository={value}")


class TestEnsure:
    def test_creates_one_where_coding_is_enabled_and_once(self, nexus):
        assert ensure_repositories(now=timezone.now()) == ["nexus"]
        assert ensure_repositories(now=timezone.now()) == []
        bare = bare_of(nexus.organisation)
        assert bare.commit_at("refs/heads/main") == Branch.objects.get().commit
        assert Event.objects.filter(action="repository.created").count() == 1

    def test_leaves_out_organisations_without_coding(self, nexus):
        Organisation.objects.update(settings={})
        assert ensure_repositories(now=timezone.now()) == []
        assert not Repository.objects.exists()


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

    @pytest.mark.parametrize("value", ["ext::sh -c id", "--upload-pack=id", "file:///x", "a/b"])
    def test_takes_no_other_transport(self, nexus, value):
        with pytest.raises(CommandError, match="repository"):
            set_repository(value)

    @needs_walls
    def test_does_not_replace_one_with_work_in_it(self, hands, other):
        hands.hire()
        hands.pushed()
        with pytest.raises(CommandError, match="agents have pushed"):
            set_repository(other)
        assert hands.tip("main")


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

    def test_follows_every_merge_where_the_setting_says_so(self, hands, other):
        set_repository(other)
        call_command("org", "set", "nexus", "repository_push=after_merge")
        assert push_back_due(now=timezone.now()) == 0
        self.merged(hands)
        assert push_back_due(now=timezone.now()) == 1
        assert push_back_due(now=timezone.now()) == 0
        assert self.at(other) == hands.tip("trunk")

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
        assert self.at(other) == moved
        assert not Event.objects.filter(action="repository.pushed_back").exists()
