"""Synchronous work for the asynchronous faces: in their own threads, connections given back."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings
from pydantic_core import to_json

from core.database import give_back_connection
from core.decision import Deny
from toolbox import wake
from toolbox.answers import answer_denial
from toolbox.faces.bodies import Disconnected
from toolbox.faces.clients import CLIENT, Client
from toolbox.faces.pools import pool_of
from toolbox.faces.turns import Request, Turns

T = TypeVar("T")
Credentials = dict[str, Any]

Turn = tuple[Turns, ...]
ANY_TIME: Turn = ()
TURN: ContextVar[Turn] = ContextVar("turn", default=ANY_TIME)
"""What the request that is being answered holds while a thread works for it."""
THREADS = pool_of(settings.WEB_THREADS, "face")
_ALL: WeakKeyDictionary[ThreadPoolExecutor, Turns] = WeakKeyDictionary()
"""What who has no turn waits for: any thread of the pool."""


async def in_turn(threads: ThreadPoolExecutor, work: Callable[..., T], *given: Any) -> T:
    """Let a thread do this, in the turn of who asks (Spec: wire 45).

    Where who asks leaves meanwhile, the turn ends with the thread's work. Raises Disconnected where
    no thread has begun it by then; it is not done.
    """
    request = Request(threads, TURN.get() or (_turns_of_all(threads),), work, given)
    client = CLIENT.get() or Client()
    client.waiting.add(request)
    try:
        request.begin()
        if client.has_left:
            request.leave()
        return await asyncio.wrap_future(request.done)
    except asyncio.CancelledError:
        request.leave()
        task = asyncio.current_task()
        if client.has_left and not (task and task.cancelling()):
            raise Disconnected from None  # a task group would take it for its own end
        raise
    finally:
        client.waiting.discard(request)


def _turns_of_all(threads: ThreadPoolExecutor) -> Turns:
    turns = _ALL.get(threads)
    if turns is None:
        turns = _ALL[threads] = Turns(threads._max_workers)  # noqa: SLF001  what it was made with
    return turns


async def in_thread(work: Callable[[], T]) -> T:
    """Do synchronous work, its connection given back afterwards."""

    def done() -> T:
        try:
            return work()
        finally:
            give_back_connection()

    return await in_turn(THREADS, done)


async def announce(agent_id: int) -> None:
    """Let commits for an agent notify this process. Who waits is among the waiters already."""
    if not wake.WATCHES.covers(agent_id):
        await in_thread(lambda: wake.WATCHES.announce(agent_id))


def credentials_of(scope: dict[str, Any]) -> Credentials:
    """What a request brings to `authenticate`, with a new id for what it does."""
    headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
    session = headers.get("x-nexus-session")
    return {
        "authorization": headers.get("authorization", b"").decode("latin-1"),
        "session_id": None if session is None else session.decode("latin-1"),
        "request_id": uuid.uuid4().hex,
    }


async def send_denial(deny: Deny, send: Any) -> None:
    """Answer a request with the envelope."""
    answer = answer_denial(deny)
    await send_json(to_json(answer.body), send, status=answer.status, headers=answer.headers)


async def send_json(
    content: bytes, send: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """Answer a request with JSON."""
    named = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        **(headers or {}),
    }
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(k.lower().encode(), v.encode()) for k, v in named.items()],
        }
    )
    await send({"type": "http.response.body", "body": content})
