"""Server-sent events over ASGI: head, parts and end of a stream, and how many one client holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from django.conf import settings

from core.budget import Budget
from toolbox.faces.bodies import Disconnected

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


async def _until_left(watch: Awaitable[None]) -> None:
    with suppress(Disconnected):
        await watch


async def until_gone(receive: Receive, watch: Awaitable[None]) -> None:
    """Run the watch until it is over or its client has left."""
    await receive()
    gone = asyncio.ensure_future(receive())
    watching = asyncio.ensure_future(_until_left(watch))
    try:
        await asyncio.wait({gone, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        watching.cancel()
