"""`workspace provision` by people who are not root: what it asks sudo for, and what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from core.decision import Code, Denied
from workspace.homes import make_company, make_home
from workspace.tree import agent_folder
from workspace.users import AgentUser

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")
SUDO = """#!/bin/sh
exec "{python}" -c 'import json, os, sys
print(json.dumps([sys.argv[1:], os.geteuid()]))' "$@"
"""
COMMAND = """
import django, os, sys
sys.argv = ["manage.py", "workspace", "provision", "--sudo"]
sys.path.insert(0, {base!r})
os.environ["DJANGO_SETTINGS_MODULE"] = "nexus_site.settings"
django.setup()
from workspace.management.commands.workspace import become_root
become_root()
"""


def asked_of_sudo(folder, **environment):
    """What the command line of somebody who is not root asks sudo for."""
    program = folder / "sudo"
    program.write_text(SUDO.format(python=sys.executable))
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(base=str(settings.BASE_DIR))],
        env={**os.environ, "PATH": f"{folder}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words, _ = json.loads(done.stdout)
    return words


class TestThroughSudo:
    def test_asks_for_the_same_command_with_this_installations_settings(self, tmp_path):
        words = asked_of_sudo(
            tmp_path, WORKSPACE_BYTES="5000000", LD_PRELOAD_OF_MINE="x", SOMETHING="else"
        )
        kept = words[0].removeprefix("--preserve-env=").split(",")
        assert "WORKSPACE_BYTES" in kept
        assert not {"PATH", "SOMETHING", "LD_PRELOAD_OF_MINE"} & set(kept)
        assert words[1:] == ["--", sys.executable, "manage.py", "workspace", "provision", "--sudo"]

    def test_says_where_there_is_no_sudo(self, monkeypatch, tmp_path):
        from django.core.management.base import CommandError

        from workspace.management.commands.workspace import become_root

        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(CommandError, match="sudo is not installed"):
            become_root()


class TestAHomeOfAnotherUser:
    @root_only
    def test_is_said_by_a_server_that_is_not_root(self, settings, tmp_path):
        settings.WORKSPACE_ROOT = tmp_path / "company"
        make_home("nexus", "coder", AgentUser(70_000, 70_000))
        for folder in [*tmp_path.parents, tmp_path, Path(settings.WORKSPACE_ROOT)]:
            if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/pytest"):
                folder.chmod(0o755)
        os.seteuid(NOBODY)
        try:
            with pytest.raises(Denied) as refusal:
                make_home("nexus", "coder", None)
        finally:
            os.seteuid(0)
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE
        assert "not root" in refusal.value.deny.message

    @root_only
    def test_goes_back_when_the_server_is_root_again(self, settings, tmp_path):
        settings.WORKSPACE_ROOT = tmp_path / "company"
        first = AgentUser(70_000, 70_000)
        make_home("nexus", "coder", first)
        assert make_home("nexus", "coder", first) == []
        assert agent_folder("nexus", "coder").stat().st_uid == 70_000


class TestAHomeThatIsNoFolder:
    @pytest.mark.parametrize("what", ["file", "link", "broken link"])
    def test_is_refused_and_what_a_link_leads_to_stays_as_it_is(self, settings, tmp_path, what):
        """Somebody may have moved a home, and left a link; it may lead to a folder of others."""
        settings.WORKSPACE_ROOT = tmp_path
        make_company("nexus")
        elsewhere = tmp_path / "elsewhere"
        if what != "broken link":
            elsewhere.mkdir(mode=0o755)
        home = agent_folder("nexus", "coder")
        home.write_text("x") if what == "file" else home.symlink_to(elsewhere)
        with pytest.raises(Denied) as refusal:
            make_home("nexus", "coder", None)
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE
        assert "the home of coder is a link or a file" in refusal.value.deny.message
        if elsewhere.exists():
            assert elsewhere.stat().st_mode & 0o777 == 0o755
            assert not list(elsewhere.iterdir())


class TestAHomeMadeTwiceAtOnce:
    def test_is_made_by_one_and_there_for_the_other(self, settings, tmp_path, monkeypatch):
        settings.WORKSPACE_ROOT = tmp_path
        make_company("nexus")
        make_home("nexus", "coder", None)
        is_dir, asked = Path.is_dir, set()

        def is_not_there_yet(path):
            """As both saw it before either made it."""
            first, _ = path not in asked, asked.add(path)
            return not first and is_dir(path)

        monkeypatch.setattr(Path, "is_dir", is_not_there_yet)
        make_company("nexus")
        make_home("nexus", "coder", None)
