"""Django's command line for NEXUS: what is wrong around it is said in one sentence."""

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
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError
    from psycopg.errors import UndefinedTable

    try:
        execute_from_command_line(list(words))
    except ImproperlyConfigured as problem:
        print(problem, file=sys.stderr)
        return 1
    except OperationalError as problem:  # the server ended the connection, or cannot be reached
        print(f"The database cannot be used: {problem}", file=sys.stderr)
        return 1
    except ProgrammingError as problem:
        if not isinstance(problem.__cause__, UndefinedTable):
            raise
        print(NO_TABLES, file=sys.stderr)
        return 1
    except OSError as problem:
        if not str(problem.filename).startswith(str(folder_of_changes())):
            raise
        print(said_of(problem), file=sys.stderr)
        return 1
    return 0


def end_when_asked() -> None:
    """Asked to stop, stop the embedded database as well, unless others use it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not ignored, as by nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def said_of(problem: OSError) -> str:
    """What to do about a folder under NEXUS_VAR that cannot be used."""
    return f"{problem.strerror}: {problem.filename}. {VAR_IS_OURS}"
