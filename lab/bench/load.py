"""A load of many clients from one process: keep-alive connections, prepared bytes, one epoll."""

from __future__ import annotations

import itertools
import json
import selectors
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Request = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Rate:
    """What one load measured: calls per second, milliseconds, answers not as expected."""

    per_second: float
    p50: float
    p99: float
    unexpected: int
    calls: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, times: list[float], seconds: float, unexpected: int) -> Rate:
        """From the single times of all calls and the length of the run."""
        if not times:
            return cls(0, 0, 0, unexpected, seconds=seconds)
        times.sort()
        half, most = (times[min(len(times) - 1, int(len(times) * p))] for p in (0.5, 0.99))
        rate = len(times) / seconds
        return cls(rate, half * 1000, most * 1000, unexpected, len(times), seconds)

    @classmethod
    def of_slices(cls, slices: Sequence[Rate]) -> Rate:
        """From the slices of one measurement: all calls, and the middle of their times."""
        calls = sum(one.calls for one in slices)
        seconds = sum(one.seconds for one in slices)
        return cls(
            calls / seconds if seconds else 0.0,
            statistics.median(one.p50 for one in slices),
            statistics.median(one.p99 for one in slices),
            sum(one.unexpected for one in slices),
            calls,
            seconds,
        )


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


class Client:
    """One connection that calls again as soon as it is answered."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = bytearray()
        self.begun = 0.0

    def call(self, content: bytes) -> None:
        """Send a call; it is short enough for the socket's buffer."""
        self.answer.clear()
        self.begun = time.perf_counter()
        self.socket.sendall(content)

    def read(self) -> int | None:
        """Take what has come: the status once the answer is whole. Raises ConnectionError."""
        part = self.socket.recv(262_144)
        if not part:
            raise ConnectionError("the server closed a connection in the middle of a load")
        self.answer += part
        end = self.answer.find(b"\r\n\r\n")
        if end < 0 or not self._is_whole(end):
            return None
        return int(self.answer[9:12])

    def _is_whole(self, end: int) -> bool:
        head = bytes(self.answer[:end]).lower()
        if b"transfer-encoding: chunked" in head:
            return self.answer.endswith(b"0\r\n\r\n")
        at = head.index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n", 1)[0])
        return len(self.answer) >= end + 4 + length


@dataclass(slots=True)
class Load:
    """What the clients of one load do until its time is over."""

    request: Request
    expected: int
    until: float
    times: list[float] = field(default_factory=list)
    unexpected: int = 0

    def run(self, clients: list[Client]) -> None:
        """Keep every client calling; ends when each has its last answer."""
        with selectors.DefaultSelector() as waiting:
            for client in clients:
                if self._call(client):
                    waiting.register(client.socket, selectors.EVENT_READ, client)
            while waiting.get_map():
                for key, _ in waiting.select():
                    status = key.data.read()
                    if status is not None and not self._answered(key.data, status):
                        waiting.unregister(key.fileobj)

    def _answered(self, client: Client, status: int) -> bool:
        """Note an answer and call again; False at the end."""
        now = time.perf_counter()
        self.times.append(now - client.begun)
        self.unexpected += status != self.expected
        return now < self.until and self._call(client)

    def _call(self, client: Client) -> bool:
        try:
            client.call(self.request())
        except StopIteration:
            return False
        return True


def measure(
    *, ports: Sequence[int], request: Request, clients: int, seconds: float, expected: int = 200
) -> Rate:
    """Let `clients`, spread over the ports, call as fast as they are answered for some seconds."""
    connections = [Client(port) for port in itertools.islice(itertools.cycle(ports), clients)]
    try:
        begun = time.perf_counter()
        load = Load(request, expected, begun + seconds)
        load.run(connections)
        return Rate.of(load.times, time.perf_counter() - begun, load.unexpected)
    finally:
        for connection in connections:
            connection.socket.close()


def repeat(*, port: int, content: bytes, times: int) -> Rate:
    """Make one call so many times, one after the other."""
    calls = itertools.repeat(content, times).__next__
    return measure(ports=[port], request=calls, clients=1, seconds=600.0)
