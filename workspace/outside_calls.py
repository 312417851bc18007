"""How many calls of one process may wait for others at once: the rest of its threads stay free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from django.conf import settings

from core.decision import Code, refuse

RETRY_AFTER = 5  # seconds
_free = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))


@contextmanager
def slot(what: str) -> Iterator[None]:
    """Occupy one of the places. Raises Denied RATE_LIMITED at once where none is free."""
    if not _free.acquire(blocking=False):
        raise refuse(
            Code.RATE_LIMITED,
            f"too many {what} are under way on this installation",
            f"call again in {RETRY_AFTER} seconds",
            rule="calls that wait for others leave threads free (spec: hands 17)",
            retry_after=RETRY_AFTER,
        )
    try:
        yield
    finally:
        _free.release()
