"""Server-sent events over ASGI: head, parts and end of a stream, and how many one client holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django.conf import settings

Client = TypeVar("Client")
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]

START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}
ALIVE = b": alive\n\n"
"""What a silent stream says from time to time: proxies close one that says nothing."""


@dataclass(slots=True)
class Budget:
    """What a process has only so many of, such as connections for streams (Spec: wire 37)."""

    most: int
    open: int = 0
    of: Counter[int] = field(default_factory=Counter)
    """How many the agents of each organisation hold."""

    def is_full_for(self, organisation_id: int) -> bool:
        """Whether an organisation holds as many as are left for all others."""
        return self.of[organisation_id] >= self.most - self.open

    def count(self, change: int, organisation_id: int | None) -> None:
        """One is taken (1) or given back (-1), by an organisation if it is for an agent."""
        self.open += change
        if organisation_id is not None:
            self.of[organisation_id] += change

    @property
    def share(self) -> int:
        """How many one client may hold: the fewer, the fewer are left for all."""
        return -(-max(0, self.most - self.open) // PART_OF_REST)


PART_OF_REST = 10
"""One client gets a tenth of what is left: those that come late find room."""
PROCESS = Budget(settings.WEB_CONNECTIONS * 3 // 4)
"""The rest is for calls and pages that are answered at once."""


class OpenStreams(Generic[Client]):
    """The streams of one kind that each client has open in this process, up to a bound."""

    def __init__(self, most: int, budget: Budget = PROCESS) -> None:
        self.most, self.budget = most, budget
        self._open: Counter[Client] = Counter()

    def is_full(self, client: Client, organisation_id: int | None = None) -> bool:
        """Whether the client, of an organisation if it is an agent, may open no other one here."""
        if organisation_id is not None and self.budget.is_full_for(organisation_id):
            return True
        return self._open[client] >= min(self.most, self.budget.share)

    @contextmanager
    def counting(self, client: Client, organisation_id: int | None = None) -> Iterator[None]:
        """Count one stream of the client for as long as it lasts."""
        self._open[client] += 1
        self.budget.count(1, organisation_id)
        try:
            yield
        finally:
            self.budget.count(-1, organisation_id)
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]


def part(content: bytes) -> Message:
    """The message that sends a part of the stream."""
    return {"type": "http.response.body", "body": content, "more_body": True}


END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


async def until_gone(receive: Receive, watch: Awaitable[None]) -> None:
    """Run the watch until it is over or its client has left."""
    await receive()
    gone = asyncio.ensure_future(receive())
    watching = asyncio.ensure_future(watch)
    try:
        await asyncio.wait({gone, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        watching.cancel()
