"""The bare repository's own guard: a real push by somebody who got past every tool."""

import os
import subprocess
from datetime import UTC, datetime

import pytest

from tests.workspace.git.world import a_root, run_git
from workspace.git.bare_repository import Signature, create_bare
from workspace.git.running import ENVIRONMENT

ZERO = "0" * 40


@pytest.fixture(scope="module")
def places():
    with a_root() as root:
        bare = create_bare(root / "bare.git", "trunk")
        drafts = create_bare(root / "drafts.git", "trunk")
        tree = drafts.run("mktree").decode().strip()
        me = Signature(name="me", email="me@x", at=datetime(2026, 1, 1, tzinfo=UTC))
        first = drafts.commit(tree, [], "one", me)
        second = drafts.commit(tree, [first], "two", me)
        other = drafts.commit(tree, [], "other", me)
        yield bare, drafts, (first, second, other)


def push(places, *refspecs, branch="feat/x", options=()):
    bare, drafts, _ = places
    env = {**ENVIRONMENT, **({"NEXUS_BRANCH": branch} if branch is not None else {})}
    words = ["git", f"--git-dir={drafts.folder}", "push", *options, str(bare.folder), *refspecs]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env)


class TestThePreReceiveHook:
    def test_takes_the_branch_that_the_control_plane_names(self, places):
        bare, _, (first, second, _) = places
        assert push(places, f"{first}:refs/heads/feat/x").returncode == 0
        assert push(places, f"{second}:refs/heads/feat/x").returncode == 0
        assert bare.commit_at("refs/heads/feat/x") == second

    @pytest.mark.parametrize(
        "target",
        ["refs/heads/main", "refs/heads/master", "refs/heads/production", "refs/heads/MAIN",
         "refs/heads/Master", "refs/heads/trunk", "refs/heads/TRUNK", "refs/heads/HEAD",
         "refs/heads/feat/head", "refs/heads/refs/heads/main", "refs/heads/heads/main",
         "refs/heads/origin/main", "refs/tags/v1", "refs/notes/x", "refs/drafts/x",
         "refs/heads/-x", "refs/heads/a%b", "refs/heads/ma\u0131n", "refs/heads/a@b"],
    )  # fmt: skip
    def test_refuses_protected_and_odd_names_even_when_they_are_named(self, places, target):
        bare, _, (first, *_) = places
        done = push(places, f"{first}:{target}", branch=target.removeprefix("refs/heads/"))
        assert done.returncode != 0
        assert "NEXUS:" in done.stderr
        assert bare.commit_at(target) == ""

    @pytest.mark.parametrize("branch", [None, "", "feat/other", "feat/X"])
    def test_refuses_every_other_branch(self, places, branch):
        _, _, (first, *_) = places
        done = push(places, f"{first}:refs/heads/feat/y", branch=branch)
        assert "no contract assigns it" in done.stderr

    def test_takes_one_update_at_a_time(self, places):
        _, _, (first, *_) = places
        both = (f"{first}:refs/heads/feat/z", f"{first}:refs/heads/main")
        assert "NEXUS:" in push(places, *both, branch="feat/z").stderr

    def test_refuses_to_delete_and_to_rewrite(self, places):
        bare, _, (first, second, other) = places
        push(places, f"{second}:refs/heads/feat/x")
        assert push(places, ":refs/heads/feat/x", options=["--force"]).returncode != 0
        for commit in (first, other):
            done = push(places, f"+{commit}:refs/heads/feat/x")
            assert done.returncode != 0
        assert bare.commit_at("refs/heads/feat/x") == second

    def test_is_not_an_agents_to_write(self, places):
        bare, *_ = places
        for path in (bare.folder, bare.folder / "hooks", bare.folder / "hooks" / "pre-receive",
                     bare.folder / "config", bare.folder / "objects"):  # fmt: skip
            found = path.stat()
            assert found.st_uid == os.geteuid()
            assert not found.st_mode & 0o022, path

    def test_reads_no_configuration_of_this_machine(self, places, tmp_path, monkeypatch):
        bare, *_ = places
        evil = tmp_path / "evil"
        (tmp_path / ".gitconfig").write_text(f"[alias]\n\tfor-each-ref = !touch {evil}\n"
                                             f"[core]\n\tfsmonitor = touch {evil}\n")  # fmt: skip
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("GIT_DIR", "/nowhere")
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.sshCommand")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {evil}")
        assert bare.commit_at("refs/heads/feat/x")
        assert bare.run("config", "--list").decode().count("sshCommand") == 0
        assert not evil.exists()
        assert run_git("--version")
