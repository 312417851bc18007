"""Counts for /metrics in files of their own; a full disk ends no process that counts."""

import os
from pathlib import Path
from typing import IO, Any

LARGEST = 4096  # bytes of one count, its name and labels included


def count_in(folder: Path) -> None:
    """Let the processes of this machine count in this folder; to be called before any counts.

    The library writes to memory that maps a file which has no room on the disk yet. Where there is
    none, the kernel ends the process (SIGBUS). Here the file has its room first.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)  # read when the library is imported
    from prometheus_client import mmap_dict, values

    first_size: int = mmap_dict._INITIAL_MMAP_SIZE  # noqa: SLF001 - a file of any other is read anew

    class Counts(mmap_dict.MmapedDict):
        """The counts of one process and kind; in its own memory where the disk has no room."""

        def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - the library's
            place = filename if read_mode else _with_room(filename, first_size)
            super().__init__(place, read_mode)  # type: ignore[no-untyped-call]

        def _init_value(self, key: str) -> None:
            if self._used + LARGEST > self._capacity and not _has_room(self._f, 2 * self._capacity):
                memory = open(_in_memory(), "a+b")  # noqa: PTH123, SIM115 - kept as the file was
                memory.write(self._m)
                memory.flush()
                self._f.close()
                self._f = memory
            super()._init_value(key)  # type: ignore[no-untyped-call]

    values.MmapedDict = Counts  # type: ignore[attr-defined]


def _with_room(filename: str, size: int) -> str:
    """The file, with room for so many bytes; or one in memory, and none on the disk."""
    try:
        with open(filename, "a+b") as file:  # noqa: PTH123 - the library's name
            if _has_room(file, size):
                return filename
        os.unlink(filename)  # noqa: PTH108 - an empty one cannot be read
    except OSError:
        pass
    return _in_memory()


def _has_room(file: IO[Any], size: int) -> bool:
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except AttributeError:  # macOS
        return True
    except OSError:
        return False
    return True


def _in_memory() -> str:
    return f"/proc/self/fd/{os.memfd_create('counts')}"
