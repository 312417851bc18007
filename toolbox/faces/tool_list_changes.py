"""Notify a watcher that its own list of tools has changed, as each revision of MCP does it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.subscriptions import ListenHandler, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from core.decision import Code, Denied, refuse
from toolbox import wake
from toolbox.answers import envelope
from toolbox.authentication import authenticate
from toolbox.caller import Caller
from toolbox.faces.bodies import Disconnected
from toolbox.faces.exports import listing
from toolbox.faces.sse import OpenStreams, part
from toolbox.faces.threads import announce, in_thread

Message = dict[str, Any]

HEARTBEAT = 15.0
"""Seconds after which a watch looks without having been woken: a wake-up is only a hint."""
SPACING = 1.0
"""Seconds between two looks at least: each costs the agent one call of its rate."""
MOST = 16
"""Streams of one agent in one process: each looks when the agent's bell rings."""
WATCHING = b": watching\n\n"
CHANGED = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed")


@dataclass(frozen=True, slots=True)
class ToolListWatcher:
    """The caller that watches, and the credentials that are checked again at every look."""

    caller: Caller
    credentials: Message


_STREAMS = OpenStreams[int](MOST)


@contextlib.contextmanager
def count_stream(watcher: ToolListWatcher) -> Iterator[None]:
    """Count the watcher's stream while it is open. Raises Denied for one too many."""
    holder = watcher.caller.agent.id, watcher.caller.organisation_id
    if _STREAMS.is_full(*holder):
        raise refuse(
            Code.RATE_LIMITED,
            f"you have as many streams of changes open here as you may: {MOST}, fewer while many "
            "others listen",
            "listen with one of them and end the others, or come again later",
            rule="streams of changes",
            retry_after=SPACING,
        )
    with _STREAMS.counting(*holder):
        yield


async def changes(watcher: ToolListWatcher) -> AsyncGenerator[None, None]:
    """Yield whenever the watcher's tools change, until it leaves or its key stops working."""
    caller, credentials = watcher.caller, watcher.credentials
    known = tools_of(caller)
    loop, rung = asyncio.get_running_loop(), asyncio.Event()
    wake.listen()
    ring = wake.WAITERS.waiting(
        caller.agent.id, lambda: loop.call_soon_threadsafe(rung.set), caller.organisation_id
    )
    with ring, contextlib.suppress(Disconnected):
        await announce(caller.agent.id)
        while True:
            rung.clear()
            try:
                now = tools_of(await in_thread(lambda: authenticate(**credentials)))
            except Denied as refusal:
                if refusal.deny.code is not Code.RATE_LIMITED:
                    return
                now = known
                rung.set()
            if now != known:
                known = now
                yield
            await asyncio.sleep(SPACING)
            # Not wait_for: Python 3.11's forgets a cancellation that comes together with the ring.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    await rung.wait()


def tools_of(caller: Caller) -> tuple[str, ...]:
    """Names of the caller's tools now."""
    return tuple(tool["name"] for tool in listing(caller.holder))


async def listen(
    context: ServerRequestContext[Any, Any],
    params: types.SubscriptionsListenRequestParams,
    *,
    watcher: ToolListWatcher,
) -> types.SubscriptionsListenResult:
    """A watcher's subscription (2026-07-28); it is closed when its key no longer proves it."""
    bus = _OwnBus(changes(watcher))
    handler = ListenHandler(bus)
    bus.at_end = handler.close
    try:
        with count_stream(watcher):
            return await handler(context, params)
    except Denied as refusal:
        data = envelope(refusal.deny, mode=watcher.caller.session.mode)
        raise MCPError(types.INVALID_REQUEST, refusal.deny.message, data) from refusal


class _OwnBus:
    """Carries one watcher's changes to its one stream."""

    at_end: Callable[[], None]

    def __init__(self, source: AsyncIterator[None]) -> None:
        self._source = source

    async def publish(self, event: ServerEvent) -> None:
        """Nothing: the watcher's own bell publishes here."""

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Tell the listener of every change until it leaves."""
        task = asyncio.get_running_loop().create_task(self._notify(listener))

        def unsubscribe() -> None:
            task.cancel()

        return unsubscribe

    async def _notify(self, listener: Callable[[ServerEvent], None]) -> None:
        try:
            async for _ in self._source:
                listener(ToolsListChanged())
        finally:
            self.at_end()


async def serve_stream(
    scope: Message,
    receive: Any,
    send: Any,
    *,
    watcher: ToolListWatcher,
) -> None:
    """A watcher's GET stream, in the revisions that begin with a handshake.

    The SDK's stateless manager opens the same stream and leaves it silent. Its beginning is sent
    with a comment: a proxy that compresses keeps it until there is something to compress. Raises
    Denied, before anything is sent, for one stream too many.
    """
    transport = StreamableHTTPServerTransport(mcp_session_id=None)
    # Its events have no ids, so none is gone on from: the SDK would answer nothing at all.
    headers = [pair for pair in scope["headers"] if pair[0] != b"last-event-id"]

    async def notify() -> None:
        async with contextlib.aclosing(changes(watcher)) as source:
            async for _ in source:
                await write.send(SessionMessage(CHANGED))
        await transport.terminate()

    async def send_at_once(message: MutableMapping[str, Any]) -> None:
        await send(message)
        if message.get("status") == HTTPStatus.OK:
            await send(part(WATCHING))

    with count_stream(watcher):
        async with transport.connect() as (_, write):
            async with anyio.create_task_group() as group:
                group.start_soon(notify)
                await transport.handle_request({**scope, "headers": headers}, receive, send_at_once)
                group.cancel_scope.cancel()
            await transport.terminate()
