"""Every line of the threat list about git, tried by an agent with real git behind it."""

import os
import subprocess

import pytest

from ledger.models import Event
from tests.workspace.git.world import BRANCH, needs_walls, run_git
from workspace.git import pushing, worktree
from workspace.git.models import BranchMove

pytestmark = needs_walls
FILE = "src/search/index.py"


def plant(hands, evil):
    """A git folder of the agent's own in its work tree, with everything that runs programs."""
    tree = hands.tree()
    run_git("init", "--quiet", str(tree))
    command = f"touch {evil}; touch /tmp/evil; touch /work/src/search/evil"
    for name in ("pre-commit", "commit-msg", "post-commit", "post-checkout", "pre-push",
                 "post-index-change", "reference-transaction", "post-rewrite"):  # fmt: skip
        hook = tree / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{command}\n")
        hook.chmod(0o755)
    (tree / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        f'\tfsmonitor = "{command}"\n\tsshCommand = "{command}"\n\teditor = "{command}"\n'
        f'\tpager = "{command}"\n\tattributesFile = /work/attributes\n'
        f"[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = /work/src/search/run.sh\n"
        f'[filter "evil"]\n\tclean = "{command}; cat"\n\tsmudge = "{command}; cat"\n'
        f'\tprocess = "{command}"\n\trequired = true\n'
        f'[diff "evil"]\n\ttextconv = "{command}; cat"\n\tcommand = "{command}"\n'
        f'[merge "evil"]\n\tdriver = "{command}"\n'
        f'[alias]\n\tadd = "!{command}"\n\twrite-tree = "!{command}"\n'
        f'[remote "origin"]\n\turl = "ext::sh -c {evil}"\n\treceivepack = "{command}"\n'
        f'[credential]\n\thelper = "!{command}"\n[include]\n\tpath = /work/more\n'
    )
    hands.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    hands.write("src/search/.gitattributes", "* filter=evil diff=evil merge=evil\n")
    run = hands.write("src/search/run.sh", f"#!/bin/sh\n{command}\n")
    run.chmod(0o755)
    hands.give()


class TestAPlantedCommand:
    def test_never_runs(self, hands, tmp_path):
        tmp_path.chmod(0o777)
        evil = tmp_path / "evil"
        contract = hands.hire()
        hands.branch()
        plant(hands, evil)
        hands.write(FILE)
        assert hands.commit(FILE, "src/search/.gitattributes").status == 200
        assert hands.push().status == 200
        hands.submit(contract)
        hands.judge(contract)
        hands.lead()
        assert hands.review().result["files"] == ["src/search/.gitattributes", FILE]
        assert hands.review(approve=True).status == 200
        assert not evil.exists()
        assert not (hands.tree() / "src/search/evil").exists()

    def test_would_run_without_a_git_folder_of_its_own(self, hands, tmp_path, monkeypatch):
        """The guards taken away: git with the agent's own folder, and no attributes of ours before
        the agent's, runs what is planted there.
        """
        hands.hire()
        hands.branch()
        plant(hands, tmp_path / "unseen")
        hands.write(FILE)
        script = worktree.COMMIT.replace("git init --quiet --bare --template= /tmp/git || fail",
                                         "cp -r /work/.git/. /tmp/git")  # fmt: skip
        script = "\n".join(line for line in script.split("\n") if "/info/attributes" not in line)
        monkeypatch.setattr(worktree, "COMMIT", script)
        hands.commit(FILE)
        assert (hands.tree() / "src/search/evil").exists()


class TestANameThatIsAnOption:
    @pytest.mark.parametrize(
        "path",
        ["--force", "-A", "--pathspec-from-file=/etc/passwd", "--exec=id", ":(top)src", ":/", ":!x",
         "*", "src/search/*", "."],
    )  # fmt: skip
    def test_is_never_taken_for_one(self, hands, path):
        hands.hire()
        hands.branch()
        hands.write(FILE)
        hands.write("src/billing/pay.py")
        assert hands.commit(path).code in ("SCOPE_DENIED", "INVALID_PARAMS")
        assert hands.draft.commit == hands.tip("main")

    def test_is_a_file_where_there_is_one(self, hands):
        hands.hire()
        hands.write("src/search/--amend")
        hands.write("src/search/[a]*.py")
        assert hands.commit("src/search/--amend", "src/search/[a]*.py").status == 200
        listed = run_git("--git-dir", str(hands.drafts), "ls-tree", "-r", "--name-only",
                         hands.draft.commit)  # fmt: skip
        assert listed.splitlines() == ["src/search/--amend", "src/search/[a]*.py"]

    @pytest.mark.parametrize(
        "message", ["--amend", "-F/etc/passwd", "x\n\nCo-authored-by: ceo\n\x1b[31m", "$(id) `id`"]
    )
    def test_is_only_text_in_a_message(self, hands, message):
        hands.hire()
        hands.write(FILE)
        commit = hands.commit(FILE, message=message).result["commit"]
        shown = run_git(
            "--git-dir", str(hands.drafts), "log", "--no-walk", "--format=%an|%cn|%B", commit
        )
        assert shown.startswith("backend_worker|backend_worker|" + message.split("\n")[0])


class TestAProtectedBranch:
    @pytest.mark.parametrize(
        "name",
        ["main", "MAIN", "refs/heads/main", "HEAD", f"{BRANCH}:main", f"+{BRANCH}:refs/heads/main",
         ":main", "heads/main", "ma\u200bin", "origin/master", "production", "--mirror", "--all"],
    )  # fmt: skip
    def test_is_pushed_to_by_no_spelling(self, hands, name):
        hands.hire()
        hands.write(FILE)
        assert hands.commit(FILE).status == 200
        before = hands.tip("main")
        assert hands.push(branch=name).code == "BRANCH_DENIED"
        assert hands.tip("main") == before
        refused = Event.objects.filter(action="tool.denied", tool="git_push")
        assert refused.count() == 1

    def test_is_refused_by_the_repository_when_the_tool_lets_it_pass(self, hands, monkeypatch):
        hands.hire()
        hands.write(FILE)
        assert hands.commit(FILE).status == 200
        before = hands.tip("main")
        real = pushing._push
        monkeypatch.setattr(pushing, "_push", lambda r, _n, _o, new: real(r, "main", before, new))
        answer = hands.push()
        assert answer.code == "BRANCH_DENIED"
        assert "NEXUS:" in answer.body["message"]
        monkeypatch.undo()
        assert hands.tip("main") == before
        assert not BranchMove.objects.filter(kind="push").exists()


class TestWhatIsCommitted:
    def test_is_decided_by_what_git_found_in_a_folder(self, hands):
        hands.hire()
        hands.write(FILE)
        hands.write("src/search/.env", "KEY=1\n")
        answer = hands.commit("src/search/")
        assert (answer.code, ".env" in answer.body["message"]) == ("SCOPE_DENIED", True)
        assert hands.commit(FILE).status == 200

    @pytest.mark.parametrize("kind", ["link out", "link to a folder", "submodule", "modules"])
    def test_holds_no_link_and_no_submodule(self, hands, kind):
        hands.hire()
        hands.branch()
        hands.write(FILE)
        odd = hands.tree() / "src/search/odd"
        if kind == "link out":
            odd.symlink_to("/etc/passwd")
        elif kind == "link to a folder":
            odd.symlink_to("../../..")
        elif kind == "submodule":
            run_git("init", "--quiet", str(odd))
            (odd / "a").write_text("a")
            run_git("add", "a", cwd=odd)
            run_git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x", cwd=odd)
        else:
            hands.write("src/search/.gitmodules", '[submodule "x"]\n\turl = ext::id\n')
        hands.give()
        assert hands.commit("src/search/").code == "SCOPE_DENIED"
        assert hands.draft.commit == hands.tip("main")

    def test_holds_no_file_that_git_itself_refuses(self, hands):
        hands.hire()
        hands.write("src/search/.gitmodules", '[submodule "x"]\n\turl = --upload-pack=id\n')
        refused = hands.commit("src/search/")
        assert (refused.code, "disallowed" in refused.body["message"]) == ("INVALID_PARAMS", True)

    def test_leaves_nothing_behind_where_it_is_refused(self, hands):
        hands.hire()
        hands.write("src/search/.env", "SECRET=hunter2\n")
        assert hands.commit("src/search/.env").code == "SCOPE_DENIED"
        hands.write("src/search/x/.env", "SECRET=hunter2\n")
        assert hands.commit("src/search/").code == "SCOPE_DENIED"
        found = run_git("--git-dir", str(hands.drafts), "cat-file", "--batch-check",
                        "--batch-all-objects")  # fmt: skip
        assert "blob" not in found

    def test_is_of_one_contract_only(self, hands):
        hands.hire()
        hands.write("src/billing/pay.py")
        assert hands.commit("src/billing/pay.py").code == "SCOPE_DENIED"

    def test_does_not_follow_a_work_tree_that_is_a_link(self, hands, tmp_path):
        hands.hire()
        tree = hands.tree()
        (tmp_path / "secret").write_text("s")
        tree.rmdir()
        tree.symlink_to(tmp_path)
        answer = hands.call("backend_worker", "git_commit", message="m", paths=[FILE])
        assert answer.code == "ISOLATION_UNAVAILABLE"
        assert not BranchMove.objects.filter(kind="push").exists()


class TestTheSandbox:
    def test_reads_objects_and_cannot_write_them(self, hands, monkeypatch):
        hands.hire()
        script = (
            worktree.BEGIN + "touch /objects/0/evil /objects/1/evil && echo wrote; id -u; exit 41"
        )
        monkeypatch.setattr(worktree, "CHECK_OUT", script)
        answer = hands.branch()
        assert "wrote" not in answer.body["message"]
        if os.geteuid() == 0:
            assert "0" not in answer.body["message"].split()

    def test_has_no_transport(self, hands, monkeypatch):
        hands.hire()
        script = worktree.BEGIN + (
            'for where in "ext::sh -c id" /objects/0 https://example.org/x; do '
            'command git ls-remote "$where" 2>&1 || :; done; exit 41'
        )
        monkeypatch.setattr(worktree, "CHECK_OUT", script)
        said = hands.branch().body["message"]
        assert said.count("not allowed") == 3


class TestAnExplanation:
    @pytest.mark.parametrize(
        ("tool", "params"),
        [("git_branch", {"name": BRANCH}), ("git_push", {"branch": BRANCH}),
         ("git_commit", {"message": "m", "paths": [FILE]})],
    )  # fmt: skip
    def test_decides_and_does_nothing(self, hands, tool, params):
        hands.hire()
        hands.tree()
        asked = hands.company.post(
            "/api/v1/explain", {"tool": tool, "params": params}, "backend_worker"
        )
        assert asked.body["allowed"] is (tool != "git_push"), "nothing is committed yet"
        assert not BranchMove.objects.exists()
        assert not hands.drafts.exists()

    @pytest.mark.parametrize(
        ("tool", "params"),
        [("git_branch", {"name": BRANCH}), ("git_push", {"branch": BRANCH}),
         ("git_commit", {"message": "m", "paths": ["src/search/more.py"]})],
    )  # fmt: skip
    def test_says_what_the_call_answers(self, hands, tool, params):
        """Of a branch that another contract pushed to (Spec: hands 19)."""
        hands.hire("frontend_worker")
        hands.write("src/search/more.py", handle="frontend_worker")
        if tool == "git_push":
            assert hands.commit("src/search/more.py", handle="frontend_worker").status == 200
        hands.hire()
        hands.pushed()
        asked = hands.company.post(
            "/api/v1/explain", {"tool": tool, "params": params}, "frontend_worker"
        )
        done = hands.call("frontend_worker", tool, **params)
        assert (asked.body["allowed"], asked.body["error_code"]) == (False, "BRANCH_DENIED")
        assert done.code == "BRANCH_DENIED"
        assert done.body["message"] == asked.body["message"]


def test_git_is_there():
    assert subprocess.run(["git", "--version"], check=True, capture_output=True).stdout
