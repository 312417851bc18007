"""Who uses the embedded PostgreSQL: a shared lock for each process; the last one out stops it."""

import atexit
import fcntl
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import IO

from nexus_site.run.postgres import Cluster
from nexus_site.run.processes import private


@dataclass
class ClusterLock:
    """This process's claim on one cluster. The kernel ends it with the process, however it ends."""

    cluster: Cluster
    file: IO[str]

    def release(self, *, patience: float = 0.0) -> bool:
        """Give the claim up; stop the server if no other process holds one. Returns whether it did.

        `patience` is how many seconds to wait for others who are about to end.
        """
        if self.file.closed:
            return False
        with self.file:
            alone = _alone(self.file, until=time.monotonic() + patience)
            return alone and not self.cluster.kept.exists() and self.cluster.stop()


def _alone(file: IO[str], *, until: float) -> bool:
    """Whether no other process holds the lock, now or before this time is over."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        else:
            return True


_locks: dict[Path, ClusterLock] = {}
_guard = Lock()


def _leave_to_parent() -> None:
    """Close what a forked process inherited: its parent's claim would last as long as it does."""
    for lock in _locks.values():
        lock.file.close()


os.register_at_fork(after_in_child=_leave_to_parent)


def take(cluster: Cluster, *, starts: bool = True) -> ClusterLock:
    """Claim the cluster for as long as this process lives, starting it if it does not serve."""
    with _guard:
        lock = _locks.get(cluster.data)
        if lock is None or lock.file.closed:
            lock = _locks[cluster.data] = claim(cluster, starts=starts)
            atexit.register(lock.release)
    return lock


def claim(cluster: Cluster, *, starts: bool = True) -> ClusterLock:
    """Claim the cluster until the lock is released, starting it if it does not serve.

    Where another process keeps it running, this one does not start it: its calls would wait.
    """
    cluster.data.parent.mkdir(parents=True, exist_ok=True)
    path = cluster.data.with_name("postgres.users.lock")
    file = open(path, "w", encoding="ascii", opener=private)  # noqa: SIM115  open as long as the lock
    fcntl.flock(file, fcntl.LOCK_SH)
    lock = ClusterLock(cluster=cluster, file=file)
    try:
        if starts:
            cluster.start()
    except KeyboardInterrupt:
        lock.release()
        raise
    except BaseException:
        file.close()
        raise
    return lock


def hold(cluster: Cluster, run: Callable[[], int | None]) -> int | None:
    """Run in a forked process that claims the cluster, and starts nothing, until it ends.

    Such a process ends without `atexit`: by `os._exit`, or by the SIGTERM that follows its parent.
    """
    lock = take(cluster, starts=False)

    def leave() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would break the stop off
        lock.release()

    def end(number: int, frame: FrameType | None) -> None:
        leave()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, end)
    try:
        return run()
    finally:
        leave()
