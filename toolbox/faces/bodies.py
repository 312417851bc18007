"""Reading the body of a request before it is known who asks: little of a stranger's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from core.decision import Code, deny

Message = dict[str, Any]

STRANGER_BODY = 64 * 1024  # bytes that are read before it is known who asks
TOO_LARGE_OF_A_STRANGER = deny(
    Code.TOO_LARGE,
    f"without a valid key a body may have {STRANGER_BODY} bytes at most",
    "send your key as Authorization: Bearer, or send less",
    rule="body size",
)


class Disconnected(Exception):
    """The client left before its request was whole, or before a thread began to answer it."""


class BodyTooLarge(Exception):
    """A body of this size needs an agent's valid key or a signed-in person."""


async def read_body(
    receive: Callable[[], Awaitable[Message]],
    *,
    limit: int,
    is_known: Callable[[], Awaitable[bool]],
) -> bytes:
    """Read the body, of a longer one only `limit` + 1 bytes: its view will refuse it.

    A slow client holds a coroutine, not a thread; `protocol.ConnectionLimits` bounds its time. Past
    STRANGER_BODY bytes `is_known` is asked once. Raises Disconnected, TooLarge.
    """
    message = await receive()
    size = len(message.get("body", b""))
    if message["type"] == "http.request" and not message.get("more_body") and size <= STRANGER_BODY:
        return cast("bytes", message.get("body", b""))[: limit + 1]
    body, known = bytearray(), False
    while True:
        if message["type"] == "http.disconnect":
            raise Disconnected
        body += message.get("body", b"")
        if len(body) > STRANGER_BODY and not known:
            known = await is_known()
            if not known:
                raise BodyTooLarge
        if len(body) > limit or not message.get("more_body", False):
            return bytes(body[: limit + 1])
        message = await receive()
