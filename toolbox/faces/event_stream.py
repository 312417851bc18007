"""The event stream over HTTP: server-sent events, resumable, one bell for all watchers."""

from __future__ import annotations

import asyncio
import functools
from contextlib import suppress
from typing import Any

from pydantic_core import to_json

from core.decision import Code, Denied, deny
from orgchart.keys import digest_of
from orgchart.pauses.rules import PauseFacts
from toolbox import door, wake
from toolbox.answers import envelope
from toolbox.authentication import authenticate
from toolbox.caller import Caller
from toolbox.faces import event_reader
from toolbox.faces.hosts import header_of
from toolbox.faces.sse import ALIVE, END, START, OpenStreams, part, until_gone
from toolbox.faces.threads import announce, credentials_of, in_thread, send_denial

Message = dict[str, Any]

HEARTBEAT = 15.0
"""Seconds after which a silent stream says that it lives, and looks again."""

MOST = 50  # streams of one agent in one process
TOO_MANY = deny(
    Code.RATE_LIMITED,
    f"you have as many event streams open here as you may: {MOST}, fewer while many others listen",
    "listen with one of them and end the others, or come again later",
    rule="event streams",
    retry_after=15,
)
_STREAMS = OpenStreams[int](MOST)


async def application(scope: Message, receive: Any, send: Any) -> None:
    """Stream the caller's events until it leaves, or its key no longer proves it."""
    credentials = credentials_of(scope)
    try:
        caller = await in_thread(lambda: authenticate(**credentials))
        if caller.pause is not None:
            await in_thread(lambda: door.refuse_paused(caller, "events", now=caller.clock.now()))
            await send_denial(caller.pause.refusal, send)
            return
        last = header_of(scope, "last-event-id")
        place = await in_thread(lambda: _place_of(caller, last))
    except Denied as refusal:
        await send_denial(refusal.deny, send)
        return
    if _STREAMS.is_full(caller.agent.id, caller.organisation_id):
        await send_denial(TOO_MANY, send)
        return
    with _STREAMS.counting(caller.agent.id, caller.organisation_id):
        await until_gone(receive, _watch(caller, credentials, place, send))


def _place_of(caller: Caller, last: str | None) -> event_reader.StreamPlace:
    """The place to go on from. Raises Denied for an id that no stream gave; that is recorded."""
    try:
        return event_reader.place_of(last) if last else event_reader.here()
    except Denied as refusal:
        door.refuse_call(caller, "events", refusal, now=caller.clock.now())
        raise


async def _watch(
    caller: Caller, credentials: Message, place: event_reader.StreamPlace, send: Any
) -> None:
    """Send what comes. The first id is that of the beginning: from there on nothing is missed."""
    key = digest_of(credentials["authorization"].partition(" ")[2].strip())
    loop, rung = asyncio.get_running_loop(), asyncio.Event()
    wake.listen()
    await send(START)
    await send(part(b": watching\nid: %s\n\n" % str(place).encode()))
    ring = wake.WAITERS.waiting(
        caller.agent.id, lambda: loop.call_soon_threadsafe(rung.set), caller.organisation_id
    )
    with ring:
        await announce(caller.agent.id)
        due = loop.time() + HEARTBEAT  # not from the last ring: one without events sends nothing
        while True:
            rung.clear()
            look = functools.partial(event_reader.read, caller=caller, key=key, after=place)
            page = await in_thread(look)
            if page.over:
                if page.pause is not None:
                    await send(part(_last_word(page.pause)))
                break
            if page.events or loop.time() >= due:
                news = b"".join(_event(where, data) for where, data in page.events)
                await send(part(news or ALIVE))
                due = loop.time() + HEARTBEAT
            place = page.place
            if page.more:
                continue
            # Not wait_for: Python 3.11's forgets a cancellation that comes with the ring.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await rung.wait()
    await send(END)


def _event(where: event_reader.StreamPlace, data: Message) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        str(where).encode(),
        str(data["kind"]).encode(),
        to_json(data),
    )


def _last_word(pause: PauseFacts) -> bytes:
    """Why the stream ends; without an id, as the place to go on from stays the one before."""
    data = {"kind": "agent", "action": "agent.paused", **envelope(pause.refusal)}
    return b"event: agent\ndata: %s\n\n" % to_json(data)
