"""The pace of one owner's requests while they are refused again and again.

A refusal costs as much as an answer. Who is refused and asks again at once, over hundreds of
connections, would take the processors from all others; so its next requests wait for places that
come evenly, before anything of ours is asked. What waits holds no thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, field
from typing import Any

from core.decision import Code, deny
from toolbox.faces.clients import CLIENT, Client

Send = Callable[[Any], Awaitable[None]]

PER_SECOND = 50
"""Requests of an owner that a process looks at in a second, …"""
AT_ONCE = 200
"""… when so many more were refused before."""
LONGEST = 10.0
"""Seconds that a request waits. However many wait, none is refused before: it would ask again at
once. A process's limits on connections and on the bodies of one owner bound what they hold."""
REFUSALS = range(400, 500)
"""Statuses of answers that say that the request was wrong."""
TOO_MANY = deny(
    Code.RATE_LIMITED,
    "too many calls were refused, and too many wait with this one",
    "wait as long as retry_after says, and call less often; a key that was good once waits apart",
    rule="pace of refused calls (spec: wire 45)",
    retry_after=5,
)


@dataclass(slots=True, eq=False)
class WaitingRequest:
    """A request that waits among others; `admitted` becomes whether it may be looked at."""

    since: float
    admitted: asyncio.Future[bool]
    others: OrderedDict[WaitingRequest, None]

    def leave(self) -> None:
        """Give the place to the others: who asked has left."""
        self.others.pop(self, None)
        _settle(self, admitted=False)


@dataclass(slots=True)
class Pace:
    """How often one owner was refused, and who waits; used in the event loop's thread only.

    Who came last is looked at first: a flood of strangers asks again only when it was answered, so
    somebody with a good key who comes among them waits for a place or two. Who has waited too long
    is refused. Who has left holds no place: a flood that asks and leaves would come anew all the
    time, and be newer than everybody else.
    """

    debt_until: float = 0.0
    waiting: OrderedDict[WaitingRequest, None] = field(default_factory=OrderedDict)
    timer: asyncio.TimerHandle | None = None

    def note_refusal(self) -> None:
        """Count a refusal: time pays it back."""
        begun = time.monotonic() - AT_ONCE / PER_SECOND
        self.debt_until = max(self.debt_until, begun) + 1 / PER_SECOND

    async def admit(self) -> bool:
        """Wait for a place, where there is need to; False where the request is refused instead."""
        now = time.monotonic()
        if self.debt_until <= now and not self.waiting:
            return True
        client = CLIENT.get() or Client()
        if client.has_left:
            return False
        loop = asyncio.get_running_loop()
        place = WaitingRequest(now, loop.create_future(), self.waiting)
        self.waiting[place] = None
        client.waiting.add(place)
        if self.timer is None:
            self.timer = loop.call_later(1 / PER_SECOND, self._give_place)
        try:
            return await place.admitted
        finally:
            client.waiting.discard(place)

    def _give_place(self) -> None:
        """Let the newest be looked at; refuse those that have waited too long."""
        begun = time.monotonic() - LONGEST
        while self.waiting and next(iter(self.waiting)).since < begun:
            _settle(self.waiting.popitem(last=False)[0], admitted=False)
        while self.waiting and not _settle(self.waiting.popitem()[0], admitted=True):
            pass  # its task was cancelled
        loop, wait = asyncio.get_running_loop(), 1 / PER_SECOND
        self.timer = loop.call_later(wait, self._give_place) if self.waiting else None

    def noting(self, send: Send, counted: Container[int] = REFUSALS) -> Send:
        """An ASGI `send` that counts the answers with these statuses."""

        def noted(message: Any) -> Awaitable[None]:
            if message.get("status") in counted:
                self.note_refusal()
            return send(message)

        return noted


def _settle(place: WaitingRequest, *, admitted: bool) -> bool:
    """Say so, unless who waited was told or has ended; whether it still waited."""
    if place.admitted.done():
        return False
    place.admitted.set_result(admitted)
    return True
