"""How many calls of one process may wait for others at once: the rest of its threads stay free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from django.conf import settings

from core.budget import Budget
from core.decision import Code, refuse
from toolbox.caller import Caller

RETRY_AFTER = 5  # seconds
PLACES = Budget(max(1, settings.WEB_THREADS // 2))
"""What the calls of this process hold that wait now."""
_changing = Lock()


@contextmanager
def slot(caller: Caller, what: str) -> Iterator[None]:
    """Occupy one of the places. Raises Denied RATE_LIMITED at once where none is free.

    The agents of an organisation hold no more of them than are left for all others.
    """
    with _changing:
        if PLACES.is_full_for(caller.organisation_id):
            raise refuse(
                Code.RATE_LIMITED,
                f"too many {what} are under way on this installation",
                f"call again in {RETRY_AFTER} seconds",
                rule="calls that wait for others leave threads free (spec: hands 17)",
                retry_after=RETRY_AFTER,
            )
        PLACES.count(1, caller.organisation_id)
    try:
        yield
    finally:
        with _changing:
            PLACES.count(-1, caller.organisation_id)
