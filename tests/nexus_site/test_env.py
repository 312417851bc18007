"""What `make env` decides; that it installs is seen by every `make` on a fresh machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_site.run import env

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """A machine of our own; the commands that would run, and a way to make some of them fail."""
    ran, failing = [], []

    def run(command, quiet=True):
        line = " ".join(str(word) for word in command)
        ran.append(line)
        return not any(re.search(pattern, line) for pattern in failing)

    lock = tmp_path / "requirements.txt"
    lock.write_text(
        "django==5.2 \\\n    --hash=sha256:aa\nuv==1.0 \\\n    --hash=sha256:bb\n"
        "pip==2.0 \\\n    --hash=sha256:cc\n"
    )
    monkeypatch.setattr(env, "run", run)
    monkeypatch.setattr(env, "ROOT", tmp_path)
    monkeypatch.setattr(env, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(env, "PYTHON", tmp_path / ".venv" / "python")
    monkeypatch.setattr(env, "STAMP", tmp_path / ".venv" / "stamp")
    monkeypatch.setattr(env, "CACHE", tmp_path / "var" / "cache")
    monkeypatch.setattr(env, "LOCK", lock)
    (tmp_path / ".venv").mkdir()
    return ran, failing


class TestUpToDate:
    def stamped(self, tmp_path):
        (tmp_path / ".venv" / "python").touch()
        (tmp_path / ".venv" / "stamp").write_text(env.wanted())

    def test_does_nothing_when_nothing_changed(self, commands, tmp_path):
        self.stamped(tmp_path)
        assert env.main() == 0
        assert commands[0] == []

    def test_installs_when_the_lock_file_changed(self, commands, tmp_path):
        self.stamped(tmp_path)
        env.LOCK.write_text("other==1\n")
        assert not env.up_to_date()

    def test_installs_when_the_checkout_moved(self, commands, tmp_path, monkeypatch):
        self.stamped(tmp_path)
        monkeypatch.setattr(env, "ROOT", tmp_path / "elsewhere")
        assert not env.up_to_date()


class TestInstall:
    def test_takes_uv(self, commands):
        ran, _ = commands
        env.install()
        assert ran[-1].endswith("requirements.txt")
        assert "uv pip sync" in ran[-1]

    def test_installs_the_locked_uv_with_its_hash(self, commands, monkeypatch):
        ran, failing = commands
        failing.append("uv --version")
        written = []
        monkeypatch.setattr(env, "run", self.reading(env.run, written))
        env.CACHE.mkdir(parents=True)
        env.install()
        assert written == ["uv==1.0 \\\n    --hash=sha256:bb\n"]
        assert "--require-hashes" in ran[1]

    def reading(self, run, written):
        def reader(command, quiet=True):
            path = Path(str(command[-1]))
            if path.suffix == ".txt" and path != env.LOCK:
                written.append(path.read_text())
            return run(command, quiet=quiet)

        return reader

    def test_falls_back_to_pip(self, commands):
        ran, failing = commands
        failing.append("uv pip sync")
        env.install()
        assert "pip install -q --require-hashes -r" in ran[-1]

    def test_says_when_no_index_is_in_reach(self, commands):
        commands[1].append("pip")
        env.CACHE.mkdir(parents=True)
        with pytest.raises(SystemExit, match="could not be installed"):
            env.install()


class TestMakeVenv:
    def test_uses_the_systems_pip_where_venv_comes_without(self, commands):
        ran, failing = commands
        failing.append("-m venv /")
        env.CACHE.mkdir(parents=True)
        env.make_venv()
        assert "--without-pip" in ran[-2]
        assert "-m pip --python" in ran[-1]
        assert "install -q --require-hashes -r" in ran[-1]

    def test_says_what_is_missing(self, commands):
        commands[1].append("venv")
        with pytest.raises(SystemExit, match="python3-venv"):
            env.make_venv()


class TestPython:
    def test_looks_for_a_newer_one(self, commands, monkeypatch):
        called = []
        monkeypatch.setattr(sys, "version_info", (3, 9, 0))
        monkeypatch.setattr(env.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(env.subprocess, "call", lambda words: called.append(words) or 0)
        assert env.main() == 0
        assert called[0][0] == "/usr/bin/python3.13"

    def test_says_so_when_there_is_none(self, commands, monkeypatch, capsys):
        monkeypatch.setattr(sys, "version_info", (3, 9, 0))
        monkeypatch.setattr(env.shutil, "which", lambda name: None)
        assert env.main() == 1
        assert "needs Python 3.11" in capsys.readouterr().out


class TestMakefile:
    def test_lists_every_target_that_people_use(self):
        shown = subprocess.run(
            ["make", "--no-print-directory", "help"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        named = {line.split()[0] for line in shown.splitlines()}
        assert {"up", "test", "demo", "check", "bench", "proofs", "faults", "help"} <= named

    def test_locks_every_package_with_a_hash(self):
        locked = (REPOSITORY / "requirements.txt").read_text()
        packages = re.findall(r"^[\w.-]+(?:\[[\w,]+\])?==.*$", locked, re.MULTILINE)
        assert len(packages) > 50
        assert all(line.endswith("\\") for line in packages)

    def test_gives_every_dependency_its_reason(self):
        lines = (REPOSITORY / "requirements.in").read_text().splitlines()
        named = [line for line in lines if line and not line.startswith("#")]
        assert [line for line in named if "# " not in line] == []
