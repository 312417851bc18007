"""A value that is computed again after some seconds, by one thread, however many ask for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Generic, TypeVar

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

Answer = TypeVar("Answer")


class Kept(Generic[Answer]):
    """What `find` answered, for `seconds`; who asks meanwhile gets the same, or waits for it.

    One for each process. A `find` that raises is asked again.
    """

    def __init__(self, find: Callable[[], Answer], *, seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._finding = Lock()
        self._kept: tuple[float, Answer] | None = None

    def __call__(self) -> Answer:
        """The answer kept, or a fresh one. Raises what `find` raises."""
        with self._finding:
            if self._kept is None or time.monotonic() >= self._kept[0]:
                self._kept = None
                answer = self._find()
                self._kept = time.monotonic() + self._seconds, answer
            return self._kept[1]

    def forget(self) -> None:
        """Find out again at the next question."""
        with self._finding:
            self._kept = None


class KeptMetrics(Collector):
    """Metrics that `count` reads at a scrape, and that are kept for `seconds`."""

    def __init__(self, count: Callable[[], list[Metric]], *, seconds: float) -> None:
        self._families = Kept(count, seconds=seconds)

    def collect(self) -> Iterator[Metric]:
        """The families, fresh or some seconds old."""
        yield from self._families()
