"""HTTP/1.1 as uvicorn speaks it, within bounds that hold before anything of ours is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from core.measures import count_turned_away
from toolbox.faces.clients import CLIENT, Client

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

Headers = Sequence[tuple[bytes, bytes]]
BODY = {b"content-length", b"transfer-encoding"}  # headers of a request that has one
ONCE = (b"host", b"authorization", b"x-nexus-session", b"idempotency-key")
"""Headers of one value: of two, REST would take both together and MCP one of them."""
FRAMING = 4096  # bytes of a message besides its headers and twice its body
JOINED = 64 * 1024  # bytes of a body that is copied behind its head


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one process allows its clients; sizes in bytes, times in seconds."""

    header_bytes: int = 32 * 1024
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    write_seconds: float = 60.0
    connections: int = 2000
    connections_per_address: int = 500
    bodies: int = 64 * 1024 * 1024
    bodies_of_owner: int = 64 * 1024 * 1024
    pipelined: int = 16
    is_proxy: Callable[[str], bool] = lambda _: False
    """Whether many clients share this address."""
    owner_of: Callable[[Headers], Hashable] = lambda _: ""
    """Who sends a body with these headers."""


@dataclass(slots=True)
class Connections:
    """The connections of one process and the bytes of request bodies that they hold."""

    limits: ConnectionLimits
    by_address: Counter[str] = field(default_factory=Counter)
    waiting: dict[BoundedProtocol, None] = field(default_factory=dict)
    """Those without a request in progress, the longest-waiting first."""
    slow: dict[BoundedProtocol, None] = field(default_factory=dict)
    """Those whose client has not yet sent its body, or not read its answer, the slowest first."""
    total: int = 0
    body_bytes: int = 0
    bytes_of: Counter[Hashable] = field(default_factory=Counter)
    """The bytes of bodies by who sends them."""

    def admit(self, protocol: BoundedProtocol) -> bool:
        """Count a new connection; when full, one that waits for its client makes room for it."""
        address = protocol.address
        crowded = self.by_address[
            address
        ] >= self.limits.connections_per_address and not self.limits.is_proxy(address)
        if crowded or self.total >= self.limits.connections:
            each = chain(self.waiting, self.slow)
            oldest = next((p for p in each if not crowded or p.address == address), None)
            if oldest is None:
                return False
            self.abort(oldest)
        self.by_address[address] += 1
        self.total += 1
        protocol.is_admitted = True
        return True

    def abort(self, protocol: BoundedProtocol) -> None:
        """End a connection for others."""
        self.release(protocol)
        protocol.transport.abort()

    def release(self, protocol: BoundedProtocol) -> None:
        """Forget a connection that ended, or that is being ended."""
        self.waiting.pop(protocol, None)
        self.slow.pop(protocol, None)
        self.release_body(protocol)
        if protocol.is_admitted:
            protocol.is_admitted = False
            self.total -= 1
            self.by_address[protocol.address] -= 1
            if not self.by_address[protocol.address]:
                del self.by_address[protocol.address]

    def hold_body(self, protocol: BoundedProtocol, size: int) -> bool:
        """Count bytes of a body; False when all bodies together, or its owner's, are too large.

        Bodies that are not whole make room for it, the slowest first, of its owner's if need be.
        """
        protocol.held += size
        self.body_bytes += size
        self.bytes_of[protocol.owner] += size
        while (crowded := self.bytes_of[protocol.owner] > self.limits.bodies_of_owner) or (
            self.body_bytes > self.limits.bodies
        ):
            others = (p for p in self.slow if p is not protocol and p.held)
            slowest = next((p for p in others if not crowded or p.owner == protocol.owner), None)
            if slowest is None:
                return False
            self.abort(slowest)
        return True

    def release_body(self, protocol: BoundedProtocol) -> None:
        """Forget the bodies of a connection's answered requests."""
        self.body_bytes -= protocol.held
        self.bytes_of[protocol.owner] -= protocol.held
        if not self.bytes_of[protocol.owner]:
            del self.bytes_of[protocol.owner]
        protocol.held = 0


class JoinedAnswer:
    """The transport of one answer: its head goes out with the body that follows, in one packet.

    uvicorn writes a head by itself. One packet less spares server and client 20 µs each. A head
    that nothing follows at once, as of a stream, goes out when the event loop has its next turn.
    """

    __slots__ = ("head", "loop", "transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.head: bytes | None = None  # b"" when it is out

    def write(self, data: bytes) -> None:
        """Keep what comes first for a moment; write what follows, and before it what was kept."""
        if self.head is None:
            self.head = data
            self.loop.call_soon(self.flush)
        elif self.head and len(data) <= JOINED:
            data, self.head = self.head + data, b""
            self.transport.write(data)
        else:
            self.flush()
            self.transport.write(data)

    def flush(self) -> None:
        """Write what was kept."""
        if self.head:
            kept, self.head = self.head, b""
            self.transport.write(kept)

    def close(self) -> None:
        """End the connection when all is written."""
        self.flush()
        self.transport.close()

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self.transport.is_closing()


class BoundExceeded(Exception):
    """A client went past a limit; the parser turns it into a refusal."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection: its headers, bodies, times and share of the process are limited.

    Use a subclass made by `bounded`, which has the connections of its process.
    """

    all: Connections

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits = self.all.limits
        self.address = ""
        self.answering: RequestResponseCycle | None = None
        self.asking = Client()
        self.is_admitted = False
        self.status = 400  # of the answer to what cannot be parsed
        self.timer: asyncio.TimerHandle | None = None
        self.writing_timer: asyncio.TimerHandle | None = None
        self.held = 0  # bytes of bodies
        self.owner: Hashable = ""  # of these bodies
        self.header_size = 0
        self.has_all_headers = False
        self.body_size = 0
        self.read_size = 0  # of the message that is being read, framing included

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit the connection and wait for its first request, or refuse it."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.all.admit(self):
            self.refuse(503)
            return
        self.all.waiting[self] = None
        self._limit_time(self.limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back all that the connection held."""
        self._stop_timer()
        if self.writing_timer is not None:
            self.writing_timer.cancel()
        self.all.release(self)
        self._leave()
        for cycle in (self.answering, self.cycle, *(later for later, _ in self.pipeline)):
            if cycle is not None:
                cycle.body = bytearray()  # it and this protocol refer to each other for a while
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; refuse a message whose framing outgrows its content."""
        if self.transport.is_closing():
            return
        if self.timer is None and (self.cycle is None or self.cycle.response_complete):
            self._limit_time(self.limits.header_seconds)
        self.read_size += len(data)
        super().data_received(data)
        if self.read_size > self.limits.header_bytes + FRAMING + 2 * self.body_size:
            self.refuse(431)

    def on_message_begin(self) -> None:
        """Begin to count a message."""
        super().on_message_begin()
        self.header_size = self.body_size = 0
        self.has_all_headers = False
        if self.timer is None:
            self._limit_time(self.limits.header_seconds)

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. A trailer is no header: no proxy looks at what comes after the body.

        No cookie holds a backslash (RFC 6265). Some releases of Python take the square of their
        number to read them, which is ten seconds for the 32 KB of one stranger (CVE-2024-7592).
        """
        self._count_header(len(name) + len(value) + 4)
        if b"\\" in value and name.lower() == b"cookie":
            value = value.replace(b"\\", b"")
        if not self.has_all_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request; its body has a time of its own. Two hosts are no host, two keys none.

        Where another protocol is asked for, the parser takes a body for the next request.
        """
        names = [name for name, _ in self.headers]
        is_ambiguous = any(names.count(name) > 1 for name in ONCE)
        if len(self.pipeline) >= self.limits.pipelined or is_ambiguous:
            raise BoundExceeded
        if self.parser.should_upgrade() and any(name in BODY for name, _ in self.headers):
            raise BoundExceeded
        self.has_all_headers = True
        super().on_headers_complete()
        self.all.waiting.pop(self, None)
        self._note_slow()
        self._limit_time(self.limits.body_seconds)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, within the budget of the process."""
        self.body_size += len(body)
        if not self.held:
            self.owner = self.limits.owner_of(self.headers)
        if not self.cycle.response_complete and not self.all.hold_body(self, len(body)):
            self.status = 503
            raise BoundExceeded
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Nothing more is awaited until the answer was sent."""
        super().on_message_complete()
        self.all.slow.pop(self, None)
        self.read_size = 0
        self._stop_timer()
        self._wait()

    def on_response_complete(self) -> None:
        """The connection is free for its next request."""
        super().on_response_complete()
        if not self.pipeline:
            self.all.release_body(self)
        self._wait()

    def pause_writing(self) -> None:
        """A client that does not read its answer is left after a while."""
        super().pause_writing()
        self._note_slow()
        self.writing_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self.all.slow.pop(self, None)
        if self.writing_timer is not None:
            self.writing_timer.cancel()
            self.writing_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be parsed, or what went past a limit."""
        self.refuse(self.status)

    def refuse(self, status: int) -> None:
        """Answer with a bare status and end the connection; never in the middle of an answer."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = self.answering
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
            return
        self._leave()
        count_turned_away(status)
        self.transport.write(
            STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n"
        )
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self.answering = cycle  # `self.cycle` is the last that came, which may wait behind this one
        cycle.transport = JoinedAnswer(self.transport, self.loop)  # type: ignore[assignment]
        CLIENT.set(self.asking)  # the task that answers begins in this context
        super()._start_asgi_task(cycle, app)

    def _leave(self) -> None:
        """Tell the request that is being answered that its client left."""
        if self.answering is not None and not self.answering.response_complete:
            self.answering.disconnected = True
            self.answering.message_event.set()
        self.asking.leave()

    def _count_header(self, size: int) -> None:
        self.header_size += size
        if self.header_size > self.limits.header_bytes:
            self.status = 431
            raise BoundExceeded

    def _wait(self) -> None:
        """Note that no request is in progress: the connection may have to make room."""
        if self.is_admitted and (self.cycle is None or self.cycle.response_complete):
            self.all.waiting.setdefault(self)

    def _note_slow(self) -> None:
        """Note that the client is waited for: the connection may have to make room."""
        if self.is_admitted:
            self.all.slow.setdefault(self)

    def _limit_time(self, seconds: float) -> None:
        self._stop_timer()
        self.timer = self.loop.call_later(seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _time_out(self) -> None:
        self.timer = None
        if self.read_size and (self.cycle is None or not self.cycle.response_complete):
            self.refuse(408)
        else:
            self.transport.close()  # it asked nothing, or was answered before its body ended


def bounded(limits: ConnectionLimits) -> type[BoundedProtocol]:
    """The protocol of one process, with its own count of connections and bytes."""
    return type("Bounded", (BoundedProtocol,), {"all": Connections(limits)})
