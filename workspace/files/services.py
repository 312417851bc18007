"""Reading and writing files for an agent: decided, done without following links, recorded."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from django.db import transaction

from core.actions import Action
from core.decision import Code, refuse
from documents.shared import require_own, shown
from documents.tree import Missing, TooLarge, Unsafe
from ledger.services import record
from orgchart.organisation_settings import quota_of
from orgchart.policy.paths import is_of_company
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from toolbox.quotas.limits import Quota
from workspace.files.places import FilePlace, judged_tree, place_of
from workspace.git.judged_commit import is_in_judged_commit
from workspace.homes import usage_of
from workspace.results import FileContent, LogLines, WrittenFile
from workspace.services import require_paths
from workspace.tree import agent_folder

MAX_READ = 1024 * 1024
MAX_LOG = 1024 * 1024
"""Bytes at the end of a log that are looked at."""
COUNTED_FOR = 60.0
"""Seconds that a count of an agent's files is believed; what it writes meanwhile is added."""


def read_file(*, caller: Caller, path: str) -> FileContent:
    """The text of a file in the caller's scope (Spec: files 9).

    For a judge a commit may be checked out: open no transaction meanwhile (Spec: hands 30). Raises
    Denied SCOPE_DENIED, also for what is no plain file; NOT_FOUND; TOO_LARGE; INVALID_PARAMS for
    what is no text.
    """
    require_paths(caller, [path], Access.READ)
    with _translated(path):
        data = _read(caller, path)
        content = data.decode("utf-8")
    return {"content": content, "sha256": hashlib.sha256(data).hexdigest()}


def require_readable(*, caller: Caller, path: str) -> None:
    """Raise Denied where `read_file` would be refused; no commit is checked out."""
    require_paths(caller, [path], Access.READ)
    with _translated(path):
        place = place_of(caller, path)
        try:
            _read_shown(caller, path, place).decode("utf-8")
        except Missing:
            if is_of_company(path) or not is_in_judged_commit(caller, place.path):
                raise


def _read(caller: Caller, path: str) -> bytes:
    """The bytes at a path; what a judge's own clone does not have, of the commit that it judges."""
    place = place_of(caller, path)
    try:
        return _read_shown(caller, path, place)
    except Missing:
        judged = None if is_of_company(path) else judged_tree(caller)
        if judged is None:
            raise
        return judged.tree.read(place.path, limit=MAX_READ)


def _read_shown(caller: Caller, path: str, place: FilePlace) -> bytes:
    with shown(caller, path):
        return place.tree.read(place.path, limit=MAX_READ)


def write_file(*, caller: Caller, path: str, content: str, now: datetime) -> WrittenFile:
    """Write a file in the caller's write scope, whole or not at all (Spec: files 10).

    The event is inserted first and the file written last, so that no change is without its event.
    Raises Denied SCOPE_DENIED, QUOTA_EXCEEDED.
    """
    require_paths(caller, [path], Access.WRITE)
    data = content.encode()
    digest = hashlib.sha256(data).hexdigest()
    with transaction.atomic(), _translated(path):
        require_own(caller, path)
        record(
            Action.FILE_WRITTEN,
            by=caller,
            at=now,
            subject=f"file:{path}"[:200],
            details={"path": path, "sha256": digest, "bytes": len(data)},
        )
        place = place_of(caller, path)
        _take_room(caller, len(data))
        place.tree.write(place.path, data)
    return {"sha256": digest, "bytes": len(data)}


def require_writable(*, caller: Caller, path: str) -> None:
    """Raise Denied where `write_file` would be refused, but for the room in the home."""
    require_paths(caller, [path], Access.WRITE)
    with transaction.atomic():
        require_own(caller, path)


def read_log(*, caller: Caller, path: str, lines: int) -> LogLines:
    """The last lines of a log file in the caller's scope (Spec: hands 11). Raises as read_file."""
    require_paths(caller, [path], Access.READ)
    with _translated(path), shown(caller, path):
        place = place_of(caller, path)
        data = place.tree.read_end(place.path, limit=MAX_LOG)
    return {"lines": data.decode("utf-8", errors="replace").splitlines()[-lines:]}


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Answer what the tree finds at a path as a refusal."""
    try:
        yield
    except Missing:
        raise refuse(
            Code.NOT_FOUND,
            f"there is no file {path}",
            "check the path; folders are not listed",
            rule="files in scope",
        ) from None
    except Unsafe as problem:
        raise refuse(
            Code.SCOPE_DENIED,
            f"{path} is refused: {problem}",
            "use a plain file; links, folders and special files are not opened",
            rule="links do not lead out (spec: files 6)",
        ) from None
    except TooLarge as problem:
        raise refuse(
            Code.TOO_LARGE, str(problem), "read a smaller file", rule="size of a file"
        ) from None
    except UnicodeDecodeError:
        raise refuse(
            Code.INVALID_PARAMS,
            f"path: {path} is no text in UTF-8",
            "read text files only",
            rule="text files",
            path="is no text in UTF-8",
        ) from None


_counting = threading.Lock()
_counted: dict[Path, tuple[float, int, int]] = {}
NOT_COUNTED = (0.0, 0, 0)


def _take_room(caller: Caller, size: int) -> None:
    """Count a file before it is written: calls at once find what is left by each other.

    Raises Denied QUOTA_EXCEEDED where it finds no room (Spec: files 19).
    """
    home = agent_folder(caller.policy.organisation, caller.handle)
    before = found = _counted.get(home, NOT_COUNTED)
    if time.monotonic() > before[0]:
        found = (time.monotonic() + COUNTED_FOR, *usage_of(home))
    with _counting:
        present = _counted.get(home, NOT_COUNTED)
        until, used, files = found if present == before else present
        for what, have, more, setting in [
            ("bytes in an agent's home", used, size, "workspace_bytes"),
            ("files in an agent's home", files, 1, "workspace_files"),
        ]:
            limit = quota_of(caller.policy.settings, setting)
            if have + more > limit:
                help_ = "make files smaller, or ask your superior to have old ones removed"
                raise Quota(what=what, limit=limit, help=help_).exceeded_by(have)
        _counted[home] = (until, used + size, files + 1)
