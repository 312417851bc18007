"""The live feed over HTTP: server-sent events for signed-in people."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, QueryDict
from pydantic_core import to_json

from core.control_characters import show_in_text
from nexus_site.live.events import PageWatcher, organisations_watched, session_of, watching_user
from toolbox.faces.sse import ALIVE, END, START, OpenStreams, part, until_gone
from toolbox.faces.threads import in_thread

Message = dict[str, Any]

EVERY = 1.5
"""Seconds between two looks at the ledger."""
PROVED = 30
"""Looks after which it is asked again whether the person may still watch, where nothing is sent."""
MOST = 12
"""Streams of one person in one process: one for each open page."""
_STREAMS = OpenStreams[str](MOST)


async def application(scope: Message, receive: Any, send: Any) -> None:
    """Stream what happens until the page is closed or the person may no longer look."""
    cookie = session_of(dict(scope["headers"]))
    username = await in_thread(lambda: watching_user(cookie)) if cookie else ""
    if not username or _STREAMS.is_full(username):
        await _refuse(429 if username else 403, send)
        return
    try:
        asked = QueryDict(scope.get("query_string", b""))
    except TooManyFieldsSent:
        await _refuse(400, send)
        return
    with _STREAMS.counting(username):
        await until_gone(receive, _watch(asked, cookie, send))


async def _watch(asked: QueryDict, cookie: str, send: Any) -> None:
    watcher = PageWatcher(asked)
    watcher.organisations = await in_thread(lambda: organisations_watched(cookie))
    await in_thread(watcher.begin)
    await send(START)
    await send(part(b"retry: 5000\n: watching\n\n"))
    looks = 0
    while True:
        looks += 1
        look = partial(watcher.look, cookie, prove=looks % PROVED == 0)
        events = await in_thread(look)
        if events is None:
            break
        if events:
            await send(part(b"".join(_part_of(each) for each in events)))
        elif looks % PROVED == 0:
            await send(part(ALIVE))
        await asyncio.sleep(EVERY)
    await send(END)


def _part_of(event: dict[str, Any]) -> bytes:
    """An event of the stream; the page shows its texts as every page does."""
    return b"data: %s\n\n" % show_in_text(to_json(event).decode()).encode()


async def _refuse(status: int, send: Any) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def without_stream(request: HttpRequest) -> HttpResponse:
    """The answer of a server without streams: a page then stays as it was loaded."""
    return HttpResponse(status=204)
