"""Room on the disk: calls that store are refused before PostgreSQL itself runs out of it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import Error

from core.decision import Code, Denied, Deny

DISK_FULL = "53100"
"""PostgreSQL's SQLSTATE where the disk of the server is full."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENODEV})
"""What is said of a disk that takes nothing more: it is full, can only be read, or is missing."""

NO_ANSWER = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN})
"""What is said of a disk that is broken, or of a network's whose server is not there."""

NO_RIGHT = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EFBIG})
"""What is said of a file that the system keeps from this process, as after a change of owners."""

DISKS = ("postgres", "postgres/pg_wal")
"""Folders of the embedded database under NEXUS_VAR that may be disks of their own."""

NAMES_RESERVED = 1000
"""Names of files that no call uses: without one PostgreSQL begins no file of its log, and ends."""

UNLIMITED = 2**62
"""More bytes, and names, than any disk has."""

STORAGE_FULL = Deny(
    Code.STORAGE_FULL,
    "a disk of this installation is full or missing, does not answer or cannot be written: nothing "
    "is stored now, and nothing is lost",
    "call again later; what is in the database can be read. The people who run NEXUS make room",
    rule="disk",
)


def require_space() -> None:
    """Raise Denied STORAGE_FULL where a disk of the embedded database has only its reserve left.

    The reserve is for what must go on: commits under way, seals, the log of PostgreSQL. Of a server
    elsewhere only its own refusal tells.
    """
    if settings.DATABASE_URL:
        return
    for folder in _folders_under(settings.NEXUS_VAR):
        try:
            disk = os.statvfs(folder)
        except OSError:
            continue
        has_few_names = disk.f_files > 0 and disk.f_favail < NAMES_RESERVED
        if has_few_names or disk.f_bavail * disk.f_frsize < settings.NEXUS_DISK_RESERVE:
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
            raise Denied(STORAGE_FULL) from full


def room_beyond_reserve(folder: Path) -> tuple[int, int]:
    """Bytes and names that may be used in a folder that exists; UNLIMITED of each where it is on
    no disk of the embedded database, whose reserve would be used.
    """
    if settings.DATABASE_URL or folder.stat().st_dev not in _own_disks():
        return UNLIMITED, UNLIMITED
    disk = os.statvfs(folder)
    names = disk.f_favail - NAMES_RESERVED if disk.f_files else UNLIMITED
    return disk.f_bavail * disk.f_frsize - settings.NEXUS_DISK_RESERVE, names


def _own_disks() -> set[int]:
    """The numbers of the disks of the embedded database."""
    found = set()
    for folder in _folders_under(settings.NEXUS_VAR):
        with suppress(OSError):
            found.add(Path(folder).stat().st_dev)
    return found


@cache
def _folders_under(var: Path) -> tuple[str, ...]:
    """The paths of the disks, joined once: joining took longer than asking for their space."""
    return tuple(str(var / folder) for folder in DISKS)


def is_disk_at_fault(problem: BaseException) -> bool:
    """Whether PostgreSQL refused a statement because its disk is full, or the system a file for
    what its disk is.
    """
    if isinstance(problem, OSError):
        return problem.errno in NO_ROOM | NO_ANSWER | NO_RIGHT
    return isinstance(problem, Error) and getattr(problem.__cause__, "sqlstate", "") == DISK_FULL


def takes_files(folder: Path) -> bool:
    """Whether the disk of a folder that exists can be written, and has a byte and a name left."""
    disk = os.statvfs(folder)
    is_writable = not disk.f_flag & os.ST_RDONLY
    # Some file systems do not count their names, and say that there are none.
    return is_writable and disk.f_bavail > 0 and (disk.f_favail > 0 or not disk.f_files)
