"""Calls over HTTP that may wait: asked at once, and again when the agent's bell rings."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nexus_site.serving.bridge import Bridge, Disconnected, Receive, Scope, Send, read_body
from toolbox.faces.rest import LAST
from toolbox.faces.waiting import patience_of, patiently
from toolbox.registry import REGISTRY

CALLS = "/api/v1/tools/"


def can_wait(method: str, path: str) -> bool:
    """Whether a call to this address is of a tool that can wait."""
    if method != "POST" or not path.startswith(CALLS):
        return False
    tool = REGISTRY.get(path.removeprefix(CALLS))
    return tool is not None and bool(tool.waits_for)


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """Answers a call of a tool that can wait."""

    bridge: Bridge
    threads: ThreadPoolExecutor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await read_body(receive, limit=self.bridge.limit)
        except (Disconnected, TimeoutError):
            return
        patience = patience_in(body)
        response = await self.ask(scope, body, last=not patience)
        agent_id = getattr(response, "agent_id", None)
        if patience and agent_id is not None and found_nothing(response):
            gone = asyncio.ensure_future(receive())
            try:
                response = await patiently(
                    agent_id=agent_id,
                    patience=patience,
                    ask=lambda last: self.ask(scope, body, last=last),
                    is_empty=found_nothing,
                    gone=gone,
                )
            finally:
                gone.cancel()
        if response is not None:
            await self.bridge.send(response, send)

    async def ask(self, scope: Scope, body: bytes, *, last: bool) -> Any:
        """One look, by the same view as every other call; only of the last is nothing an answer."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self.threads, self.bridge.answer, {**scope, LAST: last}, body
        )


def found_nothing(response: Any) -> bool:
    """Whether the view says that there is nothing yet of what the call waits for."""
    return bool(getattr(response, "found_nothing", False))


def patience_in(body: bytes) -> int:
    """How long the call may wait; 0 for whatever is wrong with a body: the view refuses it."""
    if body.count(b'"wait"') != 1:
        return 0
    try:
        return patience_of(json.loads(body))
    except (ValueError, RecursionError):
        return 0
