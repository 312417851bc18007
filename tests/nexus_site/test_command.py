"""`python manage.py`: which Python runs it (Spec: wire 44)."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from nexus_site.run import command
from nexus_site.run.env import PYTHON, ROOT

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
