"""Files that are on the disk, whole, before what follows relies on them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

UNFINISHED = ".unfinished"
"""In a folder while files are moved into it, and after that was killed: some may be missing."""


def place(path: Path, content: bytes, *, replace: bool) -> None:
    """Put a whole file in place at once, mode 0600; without `replace` never over another.

    It is on the disk then, its name too: what is recorded after it relies on it.
    """
    fresh = path.with_name(f".{path.name}.{token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchown(descriptor, *owner_in(path.parent))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            fresh.replace(path)
        elif not path.exists():
            os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink(missing_ok=True)
    keep_names(path.parent)


def plain_file(path: Path) -> Path:
    """The file that a path names, or will; links are followed, as where it is /dev/stdout.

    What puts a file in place would replace a device or a pipe: of root's, /dev/null of the machine.
    Raises OSError for one.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file: name a new one", str(path))
    return Path(os.path.realpath(path))


def owner_in(folder: Path) -> tuple[int, int]:
    """User and group of what is made in a folder, as `chown` takes them (Spec: files 24).

    What root makes belongs to the folder's owner, whose service uses it; else all stays as it is.
    """
    if os.geteuid() != 0:
        return -1, -1
    owner = folder.stat()
    return owner.st_uid, owner.st_gid


def keep_names(folder: Path) -> None:
    """Bring the names in a folder to the disk, where a machine that ends would lose new ones."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_tree(folder: Path) -> None:
    """Bring a folder and all files in it to the disk; no link is followed."""
    for _, _, names, here in os.fwalk(folder):
        for name in names:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=here)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        os.fsync(here)


@contextmanager
def filled(folder: Path) -> Iterator[Callable[[str, bytes], None]]:
    """Write files by their names; at the end they are moved into the folder, in the same order.

    What was there before stays until all are written. A folder that still has UNFINISHED may lack
    some of them.
    """
    fresh, names = folder / UNFINISHED, list[str]()
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)

    def write(name: str, content: bytes) -> None:
        (fresh / name).parent.mkdir(exist_ok=True)
        (fresh / name).write_bytes(content)
        names.append(name)

    yield write
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (fresh / name).replace(folder / name)
    shutil.rmtree(fresh)
