"""Which processes live, which are PostgreSQL's on some data folder, which hold a lock."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from core.files import owner_in

PROCESSES = Path("/proc")
SESSION = 3
"""The field of a process's `stat`, counted from 0 behind its name, that names its session."""


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


def private(path: str, flags: int) -> int:
    """Open a lock file, for its owner alone: who can read one can hold it, and we would wait.

    One that root makes belongs to the folder's owner, whose service opens it as well. That owner
    may have put a link there, to a file of root's: none is followed, and nothing is cut off.
    Spec: files 24.
    """
    kept = (flags & ~os.O_TRUNC) | os.O_NOFOLLOW
    try:
        made = os.open(path, kept | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, kept, 0o600)
    os.fchown(made, *owner_in(Path(path).parent))
    return made


def holders(lock: Path) -> set[int]:
    """The processes that hold the lock (`flock`) of this file (Linux, and of our user; else none).

    A process shares it with those it forks. One that only opened the file holds nothing.
    """
    numbers = (process for process in PROCESSES.glob("[0-9]*") if _holds(process, lock))
    return {int(process.name) for process in numbers}


def _holds(process: Path, lock: Path) -> bool:
    """Whether one of its open files is this one, and is locked."""
    try:
        return any(_is_held(process, link, lock) for link in process.joinpath("fd").iterdir())
    except OSError:
        return False  # it ended, or is another user's


def _is_held(process: Path, link: Path, lock: Path) -> bool:
    try:
        held = "FLOCK" in (process / "fdinfo" / link.name).read_text("ascii")
        return held and link.readlink() == lock
    except OSError:
        return False  # it closed this file, and may still hold another


def kill_group(leader: int) -> None:
    """Kill this process and those that it started. Raises ProcessLookupError if it is gone."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:  # gone, or so young that it leads no group yet
        os.kill(leader, signal.SIGKILL)
    kill_session(leader)


def kill_session(leader: int) -> None:
    """Kill all other processes of a session, also those in groups of their own (Linux; else none).

    Git is in one, and no one would limit its time and what it stores once its caller is gone.
    """
    for stat in PROCESSES.glob("[0-9]*/stat"):
        pid = int(stat.parent.name)
        with suppress(OSError):  # it ended
            fields = stat.read_text("ascii", errors="replace").rpartition(")")[2].split()
            if int(fields[SESSION]) == leader != pid:
                os.kill(pid, signal.SIGKILL)
