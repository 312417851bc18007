"""A question to what may hang, such as a disk of the network: who asks is not kept for ever."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Lock, Thread
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Asked(Generic[Answer]):
    """What `find` answers within `seconds`, in a thread of its own: one hangs at most.

    Who asks while it hangs waits for the rest of the seconds, and then not at all.
    """

    def __init__(self, find: Callable[[], Answer], *, seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._asking = Lock()
        self._answer: Future[Answer] | None = None
        self._ends = 0.0

    def __call__(self) -> Answer:
        """Raises TimeoutError, OSError (EAGAIN) without a thread, and what `find` raises."""
        with self._asking:
            if self._answer is None or self._answer.done():
                self._answer = self._begun()
            answer, left = self._answer, self._ends - time.monotonic()
        if not answer.done():
            wait([answer], max(0.0, left))
        if not answer.done():
            raise TimeoutError(f"no answer within {self._seconds:g} s")
        return answer.result()

    def _begun(self) -> Future[Answer]:
        answer: Future[Answer] = Future()
        try:
            Thread(target=self._ask, args=[answer], daemon=True).start()
        except RuntimeError as problem:
            raise OSError(errno.EAGAIN, "this machine can start no more threads") from problem
        self._ends = time.monotonic() + self._seconds
        return answer

    def _ask(self, answer: Future[Answer]) -> None:
        try:
            answer.set_result(self._find())
        except BaseException as problem:  # noqa: BLE001  who asked raises it
            answer.set_exception(problem)
