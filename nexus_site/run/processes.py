"""Which processes live, and which of them are PostgreSQL's on some data folder."""

import os
from pathlib import Path

PROCESSES = Path("/proc")


def lives(pid: int) -> bool:
    """Whether this process runs; one that ended and was not buried yet (a zombie) does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        status = (PROCESSES / str(pid) / "stat").read_text("ascii", errors="replace")
    except OSError:
        return not PROCESSES.exists()
    return status.rpartition(")")[2].split()[0] != "Z"


def serves(pid: int, data: Path) -> bool:
    """Whether this process lives and serves this data; after a crash numbers are used again."""
    if not PROCESSES.exists():
        return lives(pid)  # the number is all there is to know
    return lives(pid) and works_in(PROCESSES / str(pid), data)


def works_in(process: Path, data: Path) -> bool:
    """Whether the data folder is its working folder, as it is of every server process."""
    try:
        return process.joinpath("cwd").readlink() == data
    except OSError:
        return False


def processes_in(data: Path) -> set[int]:
    """The server processes on this data, whether or not their leader lives (Linux; else none)."""
    numbers = (process for process in PROCESSES.glob("[0-9]*") if works_in(process, data))
    return {int(process.name) for process in numbers}
