"""A load of many clients from one process: keep-alive connections, prepared bytes."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

Request = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Rate:
    """What one load measured: calls per second, milliseconds, answers not as expected."""

    per_second: float
    p50: float
    p99: float
    unexpected: int

    @classmethod
    def of(cls, times: list[float], seconds: float, unexpected: int) -> Rate:
        """From the single times of all calls and the length of the run."""
        if not times:
            return cls(0, 0, 0, unexpected)
        times.sort()
        half, most = (times[min(len(times) - 1, int(len(times) * p))] for p in (0.5, 0.99))
        return cls(len(times) / seconds, half * 1000, most * 1000, unexpected)


def post(
    path: str, body: dict[str, object], key: str, *, headers: dict[str, str] | None = None
) -> bytes:
    """The bytes of one call."""
    content = json.dumps(body).encode()
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n{more}"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def always(content: bytes) -> Request:
    """The same call each time."""
    return lambda: content


async def _one(port: int, request: Request, expected: int, until: float, times: list[float]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    unexpected = 0
    try:
        while time.perf_counter() < until:
            try:
                content = request()
            except StopIteration:
                return unexpected
            begun = time.perf_counter()
            writer.write(content)
            head = await reader.readuntil(b"\r\n\r\n")
            await _body(reader, head.lower())
            times.append(time.perf_counter() - begun)
            unexpected += int(head[9:12]) != expected
    finally:
        writer.close()
    return unexpected


async def _body(reader: asyncio.StreamReader, head: bytes) -> None:
    """Read the body that this head announces, by its length or in chunks."""
    if b"transfer-encoding: chunked" in head:
        await reader.readuntil(b"0\r\n\r\n")
        return
    at = head.index(b"content-length:") + 15
    await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))


async def _all(port: int, request: Request, clients: int, seconds: float, expected: int) -> Rate:
    times: list[float] = []
    begun = time.perf_counter()
    until = begun + seconds
    found = await asyncio.gather(
        *(_one(port, request, expected, until, times) for _ in range(clients))
    )
    return Rate.of(times, time.perf_counter() - begun, sum(found))


def measure(
    *, port: int, request: Request, clients: int, seconds: float, expected: int = 200
) -> Rate:
    """Let `clients` call as fast as they are answered for some seconds."""
    asyncio.run(_all(port, request, clients, min(0.5, seconds), expected))
    return asyncio.run(_all(port, request, clients, seconds, expected))


def repeat(*, port: int, content: bytes, times: int) -> Rate:
    """Make one call so many times, one after the other."""
    calls = itertools.repeat(content, times).__next__
    return asyncio.run(_all(port, calls, 1, 600.0, 200))
