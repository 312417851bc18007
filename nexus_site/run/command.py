"""Django's command line for NEXUS: what is wrong around it is said in one sentence."""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from nexus_site.run.env import PYTHON

REPOSITORY = Path(__file__).resolve().parents[2]
VAR_IS_OURS = (
    "What changes needs a disk with room, and must belong to the user that runs this: "
    "make it so, or name another folder in NEXUS_VAR"
)

NO_TABLES = (
    "The database lacks tables of this version: start NEXUS once, or run `manage.py migrate`. "
    "If it held a company, it is another database than DATABASE_URL named before"
)
DAMAGED = (
    "A file of PostgreSQL is damaged: {problem}. Copy the database's folder before anything else; "
    "docs/operations.md says what to do then, under «A damaged file of PostgreSQL»"
)
NO_ANSWER = "This asks for answers: run it at a terminal"
CLOSED = "Standard output is closed: what this says would be lost, so nothing was done"
NO_ENVIRONMENT = "This Python has no Django, and there is no .venv yet: run `make env` first"


def use_environment() -> None:
    """Go on under the Python of `make env`, where this one has no Django (Spec: wire 44)."""
    if find_spec("django") is not None:
        return
    if not PYTHON.exists():
        sys.exit(NO_ENVIRONMENT)
    os.execv(PYTHON, [str(PYTHON), *sys.argv])  # noqa: S606  the words that were given to us


def folder_of_changes() -> Path:
    """NEXUS_VAR, before there are settings."""
    return Path(os.environ.get("NEXUS_VAR") or REPOSITORY / "var").absolute()


def manage(words: Sequence[str]) -> int:
    """Run a management command; its exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
    from django.core.management import execute_from_command_line

    if sys.stdout is None:  # a key would be issued that no one reads
        print(CLOSED, file=sys.stderr)
        return 1
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  until this process ends
    try:
        execute_from_command_line(list(words))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as problem:
        said = sentence_of(problem)
        if not said:
            raise
        print(said, file=sys.stderr)
        return 1
    return 0


def sentence_of(problem: Exception) -> str:
    """What is wrong around a command, and what to do; '' where it is the command itself."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import OperationalError
    from psycopg.errors import UndefinedTable

    from core.database import is_damaged
    from nexus_site.run.postgres import PostgresUnavailable

    said = ""
    if isinstance(problem, (ImproperlyConfigured, PostgresUnavailable)):
        said = str(problem)
    elif isinstance(problem, OperationalError):  # the server ended it, or cannot be reached
        said = f"The database cannot be used: {problem}"
    elif is_damaged(problem):
        said = DAMAGED.format(problem=str(problem).splitlines()[0])
    elif isinstance(problem.__cause__, UndefinedTable):
        said = NO_TABLES
    elif isinstance(problem, EOFError):
        said = NO_ANSWER
    elif isinstance(problem, UnicodeEncodeError):
        said = f"This is no UTF-8: {problem.object!r}"
    elif isinstance(problem, OSError):
        said = _sentence_of_system(problem)
    return said


def _sentence_of_system(problem: OSError) -> str:
    from smtplib import SMTPException

    if isinstance(problem, SMTPException):  # `sendtestemail` tells whether EMAIL_URL is right
        return f"The mail server of EMAIL_URL cannot be used: {problem}"
    if isinstance(problem, BrokenPipeError):
        return "What read the standard output of this has ended"
    if problem.filename is None and problem.errno == errno.ENOSPC:
        return f"A disk is full: that of {folder_of_changes()}, or of standard output"
    if str(problem.filename).startswith(str(folder_of_changes())):
        return said_of(problem)
    return ""


def end_when_asked() -> None:
    """Asked to stop, stop the embedded database as well, unless others use it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not ignored, as by nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def said_of(problem: OSError) -> str:
    """What to do about a folder under NEXUS_VAR that cannot be used."""
    return f"{problem.strerror}: {problem.filename}. {VAR_IS_OURS}"
