"""`python manage.py`: which Python runs it (Spec: wire 44)."""

import errno
import subprocess
import sys
from importlib.metadata import version

import pytest
from psycopg.errors import DataCorrupted

from mailroom.outgoing.smtp import NoSession
from nexus_site.run import command
from nexus_site.run.env import PYTHON, ROOT
from nexus_site.run.postgres import PostgresUnavailable

OUTER = getattr(sys, "_base_executable", sys.executable)


def said(*words):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.mark.skipif(not PYTHON.exists(), reason="no `make env` here")
@pytest.mark.skipif(
    said(OUTER, "-c", "import django")[0] == 0, reason="the system's Python has Django"
)
class TestThePythonOfTheSystem:
    def test_gives_the_command_to_that_of_the_environment(self):
        assert said(OUTER, "manage.py", "version") == (0, version("django"), "")

    def test_says_what_to_do_where_there_is_none(self, monkeypatch):
        program = (
            "import pathlib; from nexus_site.run import command;"
            "command.PYTHON = pathlib.Path('/none'); command.use_environment()"
        )
        status, _, errors = said(OUTER, "-c", program)
        assert (status, errors) == (1, command.NO_ENVIRONMENT)


def test_a_python_that_has_django_keeps_the_command(monkeypatch):
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("another Python was started"))
    command.use_environment()


class TestWhatIsWrongAroundACommand:
    def run(self, monkeypatch, problem):
        def fail(words):
            raise problem

        monkeypatch.setattr("django.core.management.execute_from_command_line", fail)
        return command.manage(["manage.py", "people", "list"])

    @pytest.mark.parametrize(
        ("problem", "said"),
        [
            (EOFError(), command.NO_ANSWER),
            (OSError(errno.ENOSPC, "full"), "A disk is full"),
            (BrokenPipeError(errno.EPIPE, "Broken pipe"), "standard output of this has ended"),
            (PostgresUnavailable("initdb failed"), "initdb failed"),
            (DataCorrupted("invalid page in block 1"), "is damaged: invalid page in block 1. Copy"),
            (NoSession("ConnectionRefusedError: refused"), "EMAIL_URL cannot be used: Connection"),
            (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogate"), "no UTF-8"),
        ],
    )
    def test_is_one_sentence(self, monkeypatch, capsys, problem, said):
        assert self.run(monkeypatch, problem) == 1
        assert said in capsys.readouterr().err

    def test_is_never_a_file_of_the_commands_own(self, monkeypatch):
        with pytest.raises(OSError, match="full"):
            self.run(monkeypatch, OSError(errno.ENOSPC, "full", "/elsewhere"))

    def test_is_no_output_to_show_a_key_on(self, monkeypatch, capsys):
        monkeypatch.setattr(sys, "stdout", None)
        assert self.run(monkeypatch, AssertionError("it ran")) == 1
        assert command.CLOSED in capsys.readouterr().err

    def test_is_no_closed_input(self, monkeypatch, capsys):
        monkeypatch.setattr(sys, "stdin", None)
        whole = "django.core.management.execute_from_command_line"
        monkeypatch.setattr(whole, lambda _: input())
        assert command.manage(["manage.py", "changepassword"]) == 1
        assert command.NO_ANSWER in capsys.readouterr().err

    def test_is_no_failure_of_who_breaks_it_off(self, monkeypatch):
        assert self.run(monkeypatch, KeyboardInterrupt()) == 130
