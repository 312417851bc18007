"""Pools of threads that answer requests: started at once, and the thread that paused last works."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from queue import Empty
from threading import Barrier, Lock
from typing import Any

PATIENCE = 10.0
"""Seconds in which the system starts the threads of a pool, or fails to."""


class IdleThread:
    """Where one thread waits for one piece of work."""

    __slots__ = ("filled", "work")

    def __init__(self) -> None:
        self.filled = Lock()
        self.filled.acquire()
        self.work: Any = None


class LastIdleQueue:
    """A queue of work that wakes one thread for each piece: the one that began to wait last.

    `queue.SimpleQueue` wakes the thread that has waited longest, whose memory is in no processor's
    cache any more. That thread wakes another, which finds nothing, and takes the interpreter's lock
    for it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[IdleThread] = []
        self._work: deque[Any] = deque()

    def put(self, work: Any) -> None:
        """Give work to a thread that waits, or keep it for the next that asks."""
        with self._lock:
            if not self._waiting:
                self._work.append(work)
                return
            place = self._waiting.pop()
        place.work = work
        place.filled.release()

    def get(self, block: bool = True) -> Any:  # noqa: FBT001, FBT002  as the pool calls it
        """The oldest work; waits for it, or raises `queue.Empty`."""
        with self._lock:
            if self._work:
                return self._work.popleft()
            if not block:
                raise Empty
            place = IdleThread()
            self._waiting.append(place)
        place.filled.acquire()
        return place.work

    def get_nowait(self) -> Any:
        """The oldest work. Raises `queue.Empty`."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether no work waits for a thread."""
        return not self._work


def pool_of(count: int, name: str) -> ThreadPoolExecutor:
    """A pool of so many threads of this name."""
    pool = ThreadPoolExecutor(count, thread_name_prefix=name)
    pool._work_queue = LastIdleQueue()  # type: ignore[assignment]  # noqa: SLF001
    return pool


def start_threads(pool: ThreadPoolExecutor) -> None:
    """Start every thread of a pool: when one is needed, the system may have none left."""
    count = pool._max_workers  # noqa: SLF001  what it was made with
    together = Barrier(count)
    for waiting in [pool.submit(together.wait, PATIENCE) for _ in range(count)]:
        waiting.result()
