"""HTTP to other machines: names are resolved once, checked addresses called, time is limited."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from core.addresses import Address, is_public
from core.asked import Asked

CONNECTED = frozenset(
    f"connection.{way}.complete" for way in ("connect_tcp", "connect_unix_socket", "start_tls")
)

CONNECTING = "connection.connect_tcp.started"
NAME_SERVER = 5.0
"""Seconds that a name server has: the system's resolver may ask several for a minute."""
ANSWERED = "http11.receive_response_headers.complete"
MOST_BEFORE = 256 * 1024
"""Bytes that are received before the head of an answer is whole: of `100 Continue` come many."""
MOST_RECEIVED = 4_000_000
"""Bytes that are received then, with all that is no content, such as extensions of chunks."""

FAILURES = (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError)
"""What httpx raises where an answer does not come or cannot be read.

Also where no redirect is followed it reads the name in one; what is no name is a UnicodeError.
"""


class AddressRefused(Exception):
    """The address may not be called."""


class NotResolved(Exception):
    """The name has no address, or its name server did not answer in time."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a request goes: the addresses that were checked, and the name that certificates have.

    `target` is path and query. Nothing here is resolved a second time.
    """

    scheme: str
    name: str
    port: int
    target: str
    addresses: tuple[Address, ...]
    has_own_port: bool

    def url(self, address: Address) -> str:
        """The URL by number: a name that changes its answer afterwards changes nothing."""
        number = f"[{address}]" if address.version == 6 else str(address)
        return f"{self.scheme}://{number}:{self.port}{self.target}"

    @property
    def host_header(self) -> str:
        """The `Host` header that the name's server expects."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{name}:{self.port}" if self.has_own_port else name

    @property
    def extensions(self) -> dict[str, Any]:
        """Httpx's extensions: TLS asks for, and checks, the name and not the number."""
        return {"sni_hostname": self.name}


def resolve_once(url: str, *, internal: bool, within: float = NAME_SERVER) -> Destination:
    """Resolve an address once, so that the name cannot change between check and call.

    `within` limits the name server, in seconds. Raises AddressRefused for other schemes and, unless
    `internal` is allowed, for a name of which one address is not public, or is of this machine;
    NotResolved.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise AddressRefused("not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AddressRefused("not an http or https address")
    try:
        name = parts.hostname.encode("idna").decode("ascii")
    except UnicodeError:
        raise AddressRefused("not a host name") from None
    addresses = addresses_of(name, port, within)
    if not internal and not all(is_public(each) and not is_own(each) for each in addresses):
        raise AddressRefused(f"{name} is not a public address")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(parts.scheme, name, port, target, addresses, parts.port is not None)


def addresses_of(name: str, port: int, within: float) -> tuple[Address, ...]:
    """Every address of a name, within so many seconds. Raises NotResolved."""
    resolve = partial(socket.getaddrinfo, name, port, type=socket.SOCK_STREAM)
    try:
        found = Asked(resolve, seconds=within)()  # the system's resolver has no time limit
    except TimeoutError:
        problem = f"its name server did not answer within {within:.0f} s"
        raise NotResolved(f"{name}: {problem}") from None
    except (OSError, UnicodeError) as problem:
        raise NotResolved(f"{name}: {getattr(problem, 'strerror', '') or problem}") from problem
    return tuple(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


def is_own(address: Address) -> bool:
    """Whether a call to an address would end on this machine, past what guards it from outside.

    Such an address can be called from itself, and no other can. Nothing is sent.
    """
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
        if address.version == 4:  # of several addresses of a card the first would call
            asking.bind((str(address), 0))
        asking.connect((str(address), 9))
        return ipaddress.ip_address(asking.getsockname()[0]) == address
    return False


@cache
def trusted() -> ssl.SSLContext:
    """The authorities that certificates are checked by, read once."""
    return httpx.create_ssl_context(trust_env=False)


class Endless(httpx.ReadError):
    """More came than any answer has."""


class Connection:
    """The connection of one request; it can be cut off from another thread. Called by httpx, it is
    the trace of that request.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._is_cut = False
        self._left = MOST_BEFORE

    def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Resolve the name in time, note the socket when it is there, count what comes from it.

        Raises httpx.ConnectError where the name is not resolved; no timeout of httpx limits that.
        """
        if event == CONNECTING:
            try:
                addresses_of(info["host"], info["port"], min(NAME_SERVER, info["timeout"]))
            except NotResolved as problem:
                raise httpx.ConnectError(str(problem)) from problem
        elif event in CONNECTED:
            stream = info["return_value"]
            stream.read = self._counted(stream.read)
            self.note(stream.get_extra_info("socket"))
        elif event == ANSWERED:
            self._left = MOST_RECEIVED

    def _counted(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        def counted(*args: Any, **kwargs: Any) -> bytes:
            received = read(*args, **kwargs)
            self._left -= len(received)
            if self._left < 0:
                raise Endless("the answer has no end")
            return received

        return counted

    def note(self, connected: socket.socket) -> None:
        """This is its socket from now on; it is cut off at once where the time is over."""
        self._sockets.append(connected)
        if self._is_cut:
            self.cut()

    def cut(self) -> None:
        """End the connection, also one that is not there yet; its answer becomes an error."""
        self._is_cut = True
        for each in self._sockets[-1:]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def close_after(seconds: float) -> Iterator[Connection]:
    """Close the yielded connection when the time is over.

    The client's own timeouts restart with every byte. The connection must be a new one: of one that
    an earlier request left open nothing is seen here.
    """
    connection = Connection()
    timer = threading.Timer(seconds, connection.cut)
    timer.daemon = True
    timer.start()
    try:
        yield connection
    finally:
        timer.cancel()
