"""Safe reading, writing and listing below one root; links and special files are refused."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import BinaryIO, Concatenate, ParamSpec, TypeVar

from core.decision import Deny
from documents.disk import PLACES
from orgchart.policy.paths import normal_path

FILE_MODE = 0o640
RUNNABLE = 0o110
FOLDER_MODE = 0o750
MAX_BYTES = 16 * 1024 * 1024
TEMPORARY = ".tmp-"
DIGITS = 16
"""Of a file that is being written, after TEMPORARY; a killed call leaves it."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PLAIN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

SYS_OPENAT2 = 437  # the same number on every architecture
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
NOT_OFFERED = frozenset({errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL})
NOT_PLAIN = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.EISDIR, errno.ENXIO})


class Unsafe(Exception):
    """The path leaves the root, passes a link, or ends in something that is no plain file."""


class Missing(Exception):
    """There is nothing at this path."""


class TooLarge(Exception):
    """The file is larger than the limit."""


@dataclass(frozen=True, slots=True, order=True)
class TreeEntry:
    """One name in a folder."""

    name: str
    is_folder: bool
    size: int


Given = ParamSpec("Given")
Found = TypeVar("Found")
TIMES = 5
"""How often a tree is looked at where each time a machine replaces what another has open."""


def _again_where_replaced(
    act: Callable[Concatenate[SafeTree, Given], Found],
) -> Callable[Concatenate[SafeTree, Given], Found]:
    """Begin again where another machine has just replaced what is open here (ESTALE)."""

    @wraps(act)
    def acted(tree: SafeTree, /, *given: Given.args, **named: Given.kwargs) -> Found:
        for _ in range(TIMES - 1):
            try:
                return act(tree, *given, **named)
            except OSError as problem:
                if problem.errno != errno.ESTALE:
                    raise
        return act(tree, *given, **named)

    return acted


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class SafeTree:
    """A folder of files, entered by descriptors only: what is checked is what is opened.

    `root` is the operator's and may itself be a link; below it none is followed. `inside` are the
    folders of the tree in which this one is rooted, under the same rule. What is made here belongs
    to `owner`, a user and a group by number.
    """

    root: Path
    inside: str = ""
    owner: tuple[int, int] | None = None

    @_again_where_replaced
    def read(self, path: str, *, limit: int = MAX_BYTES) -> bytes:
        """The bytes of a plain file. Raises Unsafe, Missing, TooLarge."""
        with self._opened(path) as (file, size):
            data = b"" if size > limit else file.read(limit + 1)
        if size > limit or len(data) > limit:
            raise TooLarge(f"{path} holds more than {limit} bytes")
        return data

    @_again_where_replaced
    def read_end(self, path: str, *, limit: int) -> bytes:
        """The last bytes of a plain file, `limit` at most. Raises Unsafe, Missing."""
        with self._opened(path) as (file, size):
            file.seek(max(0, size - limit))
            return file.read(limit)

    @_again_where_replaced
    def is_folder(self, path: str) -> bool:
        """Whether there is a folder, not a plain file, at this path. Raises Unsafe, Missing."""
        *folders, name = self._parts(path)
        with _translated_errors(path), self._folder(folders, make=False) as folder:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            _require_plain(found, path)
        return stat.S_ISDIR(found.st_mode)

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[BinaryIO, int]]:
        """A plain file, open to read, and its size."""
        folders, name = self._split(path)
        with _translated_errors(path), self._folder(folders, make=False) as folder:
            _require_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
            fd = os.open(name, os.O_RDONLY | PLAIN, dir_fd=folder)
            with open(fd, "rb") as file:  # noqa: PTH123  a descriptor, not a path
                found = os.fstat(fd)
                _require_plain(found, path)
                yield file, found.st_size

    @_again_where_replaced
    def write(self, path: str, data: bytes) -> None:
        """Write a plain file, whole or not at all. Raises Unsafe.

        Missing folders are made; a link in its place is replaced, not followed.
        """
        folders, name = self._split(path)
        with _translated_errors(path), self._folder(folders, make=True) as folder:
            mode = FILE_MODE | _mode_to_keep(name, folder, path)
            temporary = TEMPORARY + secrets.token_hex(DIGITS // 2)
            fd = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, FILE_MODE, dir_fd=folder
            )
            try:
                with open(fd, "wb") as file:  # noqa: PTH123  a descriptor, not a path
                    os.fchmod(fd, mode)
                    if self.owner:
                        os.fchown(fd, *self.owner)
                    file.write(data)
                    file.flush()
                    os.fsync(fd)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)

    @_again_where_replaced
    def entries(self, path: str = "") -> list[TreeEntry]:
        """Plain files and folders at this path, by name; links and special files are left out."""
        folders = self._parts(path)
        with _translated_errors(path), self._folder(folders, make=False) as folder:
            return sorted(_entries(folder))

    def _split(self, path: str) -> tuple[list[str], str]:
        if not path or path.endswith("/"):
            raise Unsafe(f"{path!r} names a folder")
        *folders, name = self._parts(path)
        return folders, name

    def _parts(self, path: str) -> list[str]:
        whole = "/".join(part for part in (self.inside, path) if part)
        if not whole:
            return []
        for text in (path, whole):
            normal = normal_path(text) if text else text
            if isinstance(normal, Deny):
                raise Unsafe(normal.message)
        return whole.rstrip("/").split("/")

    @contextmanager
    def _folder(self, parts: list[str], *, make: bool) -> Iterator[int]:
        with PLACES.place():
            if make:
                self.root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                folder = _descend(root, parts, make=make, owner=self.owner)
            finally:
                os.close(root)
            try:
                yield folder
            finally:
                os.close(folder)


@contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    """Raise Missing or Unsafe for what the kernel answers; other errors are faults of the disk."""
    try:
        yield
    except FileNotFoundError as problem:
        raise Missing(f"there is no {path}") from problem
    except OSError as problem:
        if problem.errno in NOT_PLAIN:
            raise Unsafe(f"{path} passes a link or something that is no folder") from problem
        raise


def _require_plain(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unsafe(f"{path} is no plain file")
    if found.st_nlink > 1:
        raise Unsafe(f"{path} has another name elsewhere (a hard link)")


def _mode_to_keep(name: str, folder: int, path: str) -> int:
    """The right to run the file that is to be replaced. Raises Unsafe for a folder."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if stat.S_ISDIR(found.st_mode):
        raise Unsafe(f"{path} is a folder")
    return found.st_mode & RUNNABLE if stat.S_ISREG(found.st_mode) else 0


def _entries(folder: int) -> Iterator[TreeEntry]:
    with os.scandir(folder) as found:
        for item in found:
            if item.name.startswith(TEMPORARY):
                continue
            if item.is_dir(follow_symlinks=False):
                yield TreeEntry(item.name, is_folder=True, size=0)
            elif item.is_file(follow_symlinks=False):
                size = item.stat(follow_symlinks=False).st_size
                yield TreeEntry(item.name, is_folder=False, size=size)


def _descend(
    root: int, parts: list[str], *, make: bool, owner: tuple[int, int] | None = None
) -> int:
    """Open the folder below the root: in one call of the kernel, or part by part."""
    if not parts:
        return os.dup(root)
    if openat2_offered():
        try:
            return _openat2(root, "/".join(parts))
        except FileNotFoundError:
            if not make:
                raise
    return _walk(root, parts, make=make, owner=owner)


def _walk(root: int, parts: list[str], *, make: bool, owner: tuple[int, int] | None = None) -> int:
    at = os.dup(root)
    for part in parts:
        try:
            below = _step(at, part, make=make, owner=owner)
        finally:
            os.close(at)
        at = below
    return at


def _step(at: int, part: str, *, make: bool, owner: tuple[int, int] | None) -> int:
    made = False
    if make:
        try:
            os.mkdir(part, FOLDER_MODE, dir_fd=at)
        except FileExistsError:
            pass
        else:
            made = True
            os.fsync(at)
    below = os.open(part, FOLDER, dir_fd=at)
    if made and owner:
        os.fchown(below, *owner)
    return below


def _openat2(root: int, path: str) -> int:
    how = _OpenHow(FOLDER, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
    while True:
        fd = _libc().syscall(
            SYS_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
        )
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):  # a rename met the lookup: look again
            raise OSError(code, os.strerror(code), path)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def openat2_offered() -> bool:
    """Whether this kernel, and whatever filters its calls, has openat2."""
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(root, "."))
    except (OSError, AttributeError) as problem:
        return getattr(problem, "errno", errno.ENOSYS) not in NOT_OFFERED
    finally:
        os.close(root)
    return True
