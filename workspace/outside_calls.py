"""How many calls of one process may wait for others at once: the rest of its threads stay free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from django.conf import settings

from core.budget import Budget
from core.decision import Code, Denied, refuse
from toolbox.caller import Caller

RETRY_AFTER = 5  # seconds
PLACES = Budget(max(1, settings.WEB_THREADS // 2))
"""What the calls of this process hold that wait now."""
_of_agents: Counter[int] = Counter()
"""How many of them each agent holds."""
_changing = Lock()


@contextmanager
def slot(caller: Caller, what: str) -> Iterator[None]:
    """Occupy one of the places. Raises Denied RATE_LIMITED at once where none is free.

    The agents of an organisation hold no more of them than are left for all others, and one agent
    no more than it leaves to the others of its organisation.
    """
    agent, organisation = caller.agent.id, caller.organisation_id
    with _changing:
        if PLACES.is_full_for(organisation):
            raise _crowded(f"too many {what} are under way on this installation")
        if _of_agents[agent] >= PLACES.left_for(organisation):
            raise _crowded("your calls under way hold all the places that an agent may have")
        _count(1, agent, organisation)
    try:
        yield
    finally:
        with _changing:
            _count(-1, agent, organisation)


def _count(change: int, agent: int, organisation: int) -> None:
    PLACES.count(change, organisation)
    _of_agents[agent] += change
    if not _of_agents[agent]:
        del _of_agents[agent]


def _crowded(problem: str) -> Denied:
    return refuse(
        Code.RATE_LIMITED,
        problem,
        f"call again in {RETRY_AFTER} seconds",
        rule="calls that wait for others leave threads free (spec: hands 17)",
        retry_after=RETRY_AFTER,
    )
