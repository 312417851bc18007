"""Calls over HTTP that may wait: asked at once, and again when the agent's bell rings."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nexus_site.serving.bridge import Bridge, Disconnected, Receive, Scope, Send, read_body
from toolbox.faces.long_poll import poll, seconds_to_wait
from toolbox.faces.rest.views import LAST
from toolbox.registry import REGISTRY

CALLS = "/api/v1/tools/"


def can_wait(method: str, path: str) -> bool:
    """Whether a call to this address is of a tool that can wait."""
    if method != "POST" or not path.startswith(CALLS):
        return False
    tool = REGISTRY.get(path.removeprefix(CALLS))
    return tool is not None and bool(tool.waits_for)


@dataclass(frozen=True, slots=True)
class WaitableCall:
    """Answers a call of a tool that can wait."""

    bridge: Bridge
    threads: ThreadPoolExecutor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await read_body(receive, limit=self.bridge.limit)
        except (Disconnected, TimeoutError):
            return
        seconds = seconds_in(body)
        response = await self.ask(scope, body, last=not seconds)
        agent_id = getattr(response, "agent_id", None)
        if seconds and agent_id is not None and is_empty(response):
            gone = asyncio.ensure_future(receive())
            try:
                response = await poll(
                    agent_id=agent_id,
                    seconds=seconds,
                    ask=lambda last: self.ask(scope, body, last=last),
                    is_empty=is_empty,
                    gone=gone,
                )
            finally:
                gone.cancel()
        if response is not None:
            await self.bridge.send(response, send)

    async def ask(self, scope: Scope, body: bytes, *, last: bool) -> Any:
        """One attempt, by the same view as every other call; only the last may be empty."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self.threads, self.bridge.answer, {**scope, LAST: last}, body
        )


def is_empty(response: Any) -> bool:
    """True if the view found nothing yet of what the call waits for."""
    return bool(getattr(response, "is_empty", False))


def seconds_in(body: bytes) -> int:
    """Seconds the call may wait; 0 for whatever is wrong with a body: the view refuses it."""
    if body.count(b'"wait"') != 1:
        return 0
    try:
        return seconds_to_wait(json.loads(body))
    except (ValueError, RecursionError):
        return 0
