"""How many threads of a process may wait for the disk of the company tree at once.

A file system of the network that hangs answers nothing, no error either: unbounded, the calls for
its files would hold every thread, and no mail would be sent.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore, get_ident

from django.conf import settings

PATIENCE = 5.0
"""Seconds for which nothing on a disk moves on, after which it counts as one that hangs."""


@dataclass(slots=True)
class DiskPlaces:
    """What a thread holds while it is in the company tree (Spec: files 25)."""

    most: int
    since: dict[int, float] = field(default_factory=dict)
    """When each thread took its place."""
    free: BoundedSemaphore = field(init=False)

    def __post_init__(self) -> None:
        """Free all of them."""
        self.free = BoundedSemaphore(self.most)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold one. Raises OSError (ETIMEDOUT) where the disk hangs; at once, where it did before.

        A thread that holds one asks for no second one.
        """
        if not self.free.acquire(timeout=0 if self._hang() else PATIENCE):
            raise OSError(
                errno.ETIMEDOUT, "the disk of the company tree or of skills does not answer"
            )
        self.since[get_ident()] = time.monotonic()
        try:
            yield
        finally:
            del self.since[get_ident()]
            self.free.release()

    def _hang(self) -> bool:
        """Whether all places are taken, each for PATIENCE at least."""
        taken = list(self.since.values())
        return len(taken) >= self.most and time.monotonic() - max(taken) >= PATIENCE


PLACES = DiskPlaces(max(1, settings.WEB_THREADS // 4))
