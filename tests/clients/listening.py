"""Clients that listen while a test acts: what they are told lands in a queue."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import httpx
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.patience import PATIENCE

OPEN, ENDED = "open", "ended"


@dataclass
class Heard:
    """What one client was told, in its order."""

    told: queue.Queue = field(default_factory=queue.Queue)

    def next(self):
        """The next thing that it was told; fails where there is none."""
        return self.told.get(timeout=PATIENCE)


@contextlib.asynccontextmanager
async def connected(url: str, key: str, *, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's own client, with an agent's key."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def listening(url: str, key: str) -> AbstractContextManager[Heard]:
    """Listen by the current revision; after each announcement, the names of the tools then."""

    async def listen(tell: Callable[[object], None]) -> None:
        async with connected(url, key) as client, client.listen(tools_list_changed=True) as changes:
            tell(OPEN)
            async for _ in changes:
                tell({tool.name for tool in (await client.list_tools()).tools})
        tell(ENDED)

    return in_the_background(listen)


@contextmanager
def in_the_background(listen: Callable) -> Iterator[Heard]:
    """Run a listener in a loop of its own until the test is through with it."""
    heard, loop = Heard(), asyncio.new_event_loop()
    task = loop.create_task(listen(heard.told.put))

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        except Exception as problem:  # noqa: BLE001  whatever it is, the test is told
            heard.told.put(problem)

    thread = threading.Thread(target=run, name="listener")
    thread.start()
    try:
        first = heard.next()
        if isinstance(first, Exception):
            raise _innermost(first)
        assert first == OPEN
        yield heard
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(PATIENCE)
        loop.close()


def _innermost(problem: BaseException) -> BaseException:
    return _innermost(problem.exceptions[0]) if isinstance(problem, BaseExceptionGroup) else problem
