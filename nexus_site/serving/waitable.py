"""Calls over HTTP that may wait: asked at once, and again when the agent's bell rings."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from nexus_site.serving.bridge import Bridge, Receive, Scope, Send
from toolbox.faces.long_poll import poll
from toolbox.faces.rest.views import LAST
from toolbox.faces.threads import in_turn
from toolbox.registry import REGISTRY

CALLS = "/api/v1/tools/"


def is_waitable(method: str, path: str) -> bool:
    """Whether a call to this address is of a tool that can wait."""
    if method != "POST" or not path.startswith(CALLS):
        return False
    tool = REGISTRY.get(path.removeprefix(CALLS))
    return tool is not None and bool(tool.waits_for)


@dataclass(frozen=True, slots=True)
class WaitableCall:
    """Answers a call of a tool that can wait."""

    bridge: Bridge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = await self.bridge.read(scope, receive, send)
        if body is None:
            return
        response = await self.ask(scope, body, last=None)
        seconds = getattr(response, "seconds", 0)
        agent_id = getattr(response, "agent_id", None)
        if seconds and agent_id is not None and is_empty(response):
            gone = asyncio.ensure_future(receive())
            try:
                response = await poll(
                    agent_id=agent_id,
                    organisation_id=response.organisation_id,
                    seconds=seconds,
                    ask=lambda last: self.ask(scope, body, last=last),
                    is_empty=is_empty,
                    gone=gone,
                )
            finally:
                gone.cancel()
        if response is not None:
            await self.bridge.send(response, send)

    async def ask(self, scope: Scope, body: bytes, *, last: bool | None) -> Any:
        """One attempt, by the same view as every other call; only the last may be empty.

        None for the first: the view reads from the parameters whether another follows it.
        """
        answer = self.bridge.answer
        return await in_turn(self.bridge.threads, answer, {**scope, LAST: last}, body)


def is_empty(response: Any) -> bool:
    """True if the view found nothing yet of what the call waits for."""
    return bool(getattr(response, "is_empty", False))
