"""The root of the company tree: ours, or an empty folder where its disk is missing."""

from __future__ import annotations

import errno
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

from django.conf import settings

from core.asked import Asked
from core.files import place
from documents.disk import PLACES
from documents.tree import FOLDER_MODE

MARK = ".nexus-tree"
"""In the root: which tree it is. `manage.py backup` copies it with the files."""
KNOWN = "company.tree"
"""Under NEXUS_VAR: the mark of the tree that this installation uses, and where it is."""
ask_mark = Asked(lambda: _text_of(Path(settings.WORKSPACE_ROOT) / MARK), seconds=2.0)
"""The mark in the root, taking no place; raises TimeoutError where the disk hangs, and OSError."""


def root() -> Path:
    """The root of the company tree (Spec: files 23).

    Raises OSError (ENODEV) where another folder has its place: what is written there vanishes when
    the disk is mounted again; ETIMEDOUT where its disk hangs.
    """
    here = Path(settings.WORKSPACE_ROOT)
    known = _known(settings.NEXUS_VAR / KNOWN, here)
    if known and _mark_in(here) != known:
        raise OSError(
            errno.ENODEV,
            f"{here} is not the company tree that this installation knows. Is its disk mounted? "
            "To use what is there from now on, remove "
            f"{settings.NEXUS_VAR / KNOWN} and start again",
        )
    return here


def tree_status() -> str:
    """Whether files can be reached, for health checks. Strangers may ask: it names no place."""
    try:
        mark = ask_mark()
    except TimeoutError:
        return "the disk of the company tree, WORKSPACE_ROOT, does not answer"
    except OSError as problem:
        return f"the company tree, WORKSPACE_ROOT: {problem.strerror}"
    known = _known(settings.NEXUS_VAR / KNOWN, Path(settings.WORKSPACE_ROOT))
    if known and mark != known:
        return "the company tree is not in WORKSPACE_ROOT: its disk may not be mounted"
    return "reachable"


def know_root() -> None:
    """Learn at the first start with this place which tree is ours.

    Raises OSError, as `root`, at a later one.
    """
    known, here = settings.NEXUS_VAR / KNOWN, Path(settings.WORKSPACE_ROOT)
    if not _known(known, here):
        with suppress(OSError):  # there is no room: the next start does it
            _learn(known, here)
    root()


def _learn(known: Path, here: Path) -> None:
    """Mark the tree where it has no mark, and note its mark."""
    here.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    if not _text_of(here / MARK):
        place(here / MARK, token_hex(16).encode(), replace=True)
    place(known, f"{_text_of(here / MARK)} {here}".encode(), replace=True)
    _known.cache_clear()


def forget_root() -> None:
    """Let the next start learn it again: another tree takes its place."""
    (settings.NEXUS_VAR / KNOWN).unlink(missing_ok=True)
    _known.cache_clear()


@cache
def _known(path: Path, here: Path) -> str:
    """The mark that is known of this place; it changes only while nothing serves."""
    mark, _, place_of_mark = _text_of(path).partition(" ")
    return mark if place_of_mark == str(here) else ""


def _mark_in(here: Path) -> str:
    with PLACES.place():
        return _text_of(here / MARK)


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
