"""Small disks that fill up, which only the superuser can mount, and disks that hang."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from documents import root
from documents.disk import PLACES
from tests.patience import wait_until

MEGABYTE = 1024 * 1024


@contextmanager
def disk(folder: Path, megabytes: int):
    """A disk of its own under this folder; only the superuser can mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "none", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def full(folder: Path, *, but: int):
    """Let so many megabytes of the disk be free meanwhile, or none at all."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        try:
            while free(folder) > but:
                file.write(bytes(MEGABYTE if but else 4096))
                file.flush()
        except OSError:
            assert but == 0
    try:
        yield
    finally:
        ballast.unlink()


def free(folder: Path) -> float:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize / MEGABYTE


@contextmanager
def hanging(tree: Path):
    """Let the disk of a company tree answer nothing, with all places taken that wait for it."""
    mark = tree / root.MARK
    text = mark.read_text()
    mark.unlink()
    os.mkfifo(mark)  # who opens it to read waits until someone writes
    with ThreadPoolExecutor(PLACES.most) as threads:
        waiting = [threads.submit(root.root) for _ in range(PLACES.most)]
        try:
            wait_until(lambda: len(PLACES.since) == PLACES.most, "places are free")
            yield
        finally:
            while wait(waiting, 0.05).not_done:  # also who comes to the mark only now
                os.close(os.open(mark, os.O_RDWR))  # all who wait read an empty mark
    mark.unlink()
    mark.write_text(text)
