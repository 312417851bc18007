"""A disk whose machine can lose its power: what was not yet written to it is gone then."""

import fcntl
import os
import struct
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SHUT_DOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)."""
WITHOUT_THE_JOURNAL = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: not even the journal of the file system is written any more."""


@dataclass
class Disk:
    """A file system ext4 of its own, in a file, under a folder."""

    image: Path
    folder: Path

    def mount(self) -> None:
        """Show it under its folder. The kernel recovers it as after a loss of power."""
        words = ["mount", "-o", "loop", str(self.image), str(self.folder)]
        subprocess.run(words, check=True, capture_output=True)

    def lose_power(self) -> None:
        """From now on each call fails, and what was only in memory never reaches the disk."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, SHUT_DOWN, struct.pack("I", WITHOUT_THE_JOURNAL))
        finally:
            os.close(fd)

    def unmount(self) -> bool:
        """Let it go; False while a process has it in use, such as one that a sandbox leaves."""
        if self.folder.is_mount():
            subprocess.run(["umount", str(self.folder)], check=False, capture_output=True)
        words = ["losetup", "--noheadings", "--associated", str(self.image)]
        return not subprocess.run(words, check=True, capture_output=True).stdout


@contextmanager
def disk_with_power(image: Path, folder: Path, megabytes: int):
    """A disk under this folder; only the superuser can mount one."""
    with image.open("wb") as file:
        file.truncate(megabytes * 1024 * 1024)
    disk = Disk(image, folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
        disk.mount()
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("this user may not make and mount a disk of ext4")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
