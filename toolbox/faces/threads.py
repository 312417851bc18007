"""Synchronous work for the asynchronous faces: in their own threads, connections given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.conf import settings
from django.db import close_old_connections
from pydantic_core import to_json

from core.decision import Denied, status_of
from toolbox import door

T = TypeVar("T")

THREADS = ThreadPoolExecutor(settings.WEB_THREADS, thread_name_prefix="face")


async def in_thread(work: Callable[[], T]) -> T:
    """Do synchronous work, its connection given back afterwards."""

    def done() -> T:
        try:
            return work()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(THREADS, done)


def credentials_of(scope: dict[str, Any], request_id: str) -> dict[str, Any]:
    """What a request brings to `authenticate`."""
    headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
    session = headers.get("x-nexus-session")
    return {
        "authorization": headers.get("authorization", b"").decode("latin-1"),
        "session_id": None if session is None else session.decode("latin-1"),
        "request_id": request_id,
    }


async def refuse_request(refusal: Denied, send: Any) -> None:
    """Answer a request that proves no caller with the envelope."""
    content = to_json(door.envelope(refusal.deny, tool="", mode=""))
    headers = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        **door.headers_of(refusal.deny),
    }
    await send(
        {
            "type": "http.response.start",
            "status": status_of(refusal.deny.code),
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": content})
