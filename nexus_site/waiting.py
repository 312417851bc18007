"""Calls over HTTP that may wait: asked at once, and again when the agent's bell rings."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nexus_site.bridge import Bridge, Disconnected, Receive, Scope, Send, read_body
from toolbox.faces.waiting import patience_of, patiently
from toolbox.registry import REGISTRY

CALLS = "/api/v1/tools/"


def waiting_field(method: str, path: str) -> str:
    """The result field that a call to this address waits for, or ''."""
    if method != "POST" or not path.startswith(CALLS):
        return ""
    tool = REGISTRY.get(path.removeprefix(CALLS))
    return tool.waits_for if tool is not None else ""


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """Answers a call of a tool that can wait."""

    bridge: Bridge
    threads: ThreadPoolExecutor
    field: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await read_body(receive, limit=self.bridge.limit)
        except (Disconnected, TimeoutError):
            return
        patience, at_once = split(body)
        response = await self.ask(scope, at_once)
        agent_id = getattr(response, "agent_id", None)
        if patience and agent_id is not None and self.is_empty(response):
            gone = asyncio.ensure_future(receive())
            try:
                response = await patiently(
                    agent_id=agent_id,
                    patience=patience,
                    ask=lambda: self.ask(scope, at_once),
                    is_empty=self.is_empty,
                    gone=gone,
                )
            finally:
                gone.cancel()
        if response is not None:
            await self.bridge.send(response, send)

    async def ask(self, scope: Scope, body: bytes) -> Any:
        """One look, by the same view as every other call."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, self.bridge.answer, scope, body)

    def is_empty(self, response: Any) -> bool:
        """Whether an answer holds nothing of what the call waits for."""
        if response.status_code != 200:
            return False
        return not json.loads(response.content)["result"][self.field]


def split(body: bytes) -> tuple[int, bytes]:
    """How long a call may wait, and the same call without waiting.

    Whatever is wrong with a body is left in it, for the view to refuse.
    """
    if body.count(b'"wait"') != 1:
        return 0, body
    try:
        params = json.loads(body)
    except (ValueError, RecursionError):
        return 0, body
    patience = patience_of(params)
    return (patience, json.dumps({**params, "wait": 0}).encode()) if patience else (0, body)
