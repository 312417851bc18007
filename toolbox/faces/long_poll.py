"""Calls that wait: a coroutine each, woken by the agent's bell; waiting holds no thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from toolbox import wake
from toolbox.faces.sse import OpenStreams
from toolbox.faces.threads import announce

T = TypeVar("T")

MOST = 50
"""Calls of one agent that wait in one process; one more is answered at once."""
_WAITING = OpenStreams[int](MOST)

SPACING = 1.0
"""Seconds between two looks of a call: each costs the agent one call of its rate, which others'
deeds would use up that ring its bell."""

LONGEST = 30
"""Seconds a call may wait (Spec: mail 32)."""


def seconds_to_wait(params: Any) -> int:
    """Seconds that the parameters ask to wait; 0 where they are wrong, for the gate to say so."""
    wait = params.get("wait") if isinstance(params, dict) else None
    return wait if type(wait) is int and 0 < wait <= LONGEST else 0


async def poll(
    *,
    agent_id: int,
    organisation_id: int = 0,
    seconds: float,
    ask: Callable[[bool], Awaitable[T]],
    is_empty: Callable[[T], bool],
    gone: asyncio.Future[Any] | None = None,
) -> T | None:
    """Ask again whenever the agent's bell rings, until there is something or the time ends.

    Past MOST calls it is asked once more, and that is all. Each attempt passes key, gates and
    policy anew; `ask` is called with whether it is the last. After the first ring of the bell the
    next looks are a second apart.
    None when the client has gone meanwhile.
    """
    if _WAITING.is_full(agent_id, organisation_id):
        return await ask(True)
    loop, rung = asyncio.get_running_loop(), asyncio.Event()
    ends = time.monotonic() + seconds
    wake.listen()
    with (
        _WAITING.counting(agent_id, organisation_id),
        wake.WAITERS.waiting(
            agent_id, lambda: loop.call_soon_threadsafe(rung.set), organisation_id
        ),
    ):
        await announce(agent_id)
        looked = -SPACING
        while True:
            rung.clear()
            left = ends - time.monotonic()
            answer = await ask(left <= 0)
            if left <= 0 or not is_empty(answer):
                return answer
            await _until(rung.wait(), gone, ends)
            await _until(asyncio.sleep(looked + SPACING - time.monotonic()), gone, ends)
            if gone is not None and gone.done():
                return None
            looked = time.monotonic()


async def _until(
    something: Coroutine[Any, Any, object], gone: asyncio.Future[Any] | None, ends: float
) -> None:
    """Wait for something, until the client has gone or the time ends."""
    awaited = asyncio.ensure_future(something)
    waiting: set[asyncio.Future[Any]] = {awaited} if gone is None else {awaited, gone}
    left = max(0.0, ends - time.monotonic())
    try:
        await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    finally:
        awaited.cancel()
