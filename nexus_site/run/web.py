"""One web process, at the address that it shares with the others."""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.importer import import_from_string

from nexus_site.run.database.base import limit_statements
from nexus_site.run.pulse import Pulse
from nexus_site.serving.protocol import ConnectionLimits, bounded
from nexus_site.serving.proxies import Proxies

GRACE = 5  # seconds for calls in progress when asked to stop
VANISHED = 60
"""Seconds after which a client has vanished that confirms nothing of what it is sent. A stream
sends so little that it would otherwise be kept, and counted, for a quarter of an hour."""
YIELDS = 0.0005
"""Seconds after which a thread that computes gives way to one that waits (Python's own: 0.005)."""
SPREADS = sys.platform == "linux"
"""Whether the system spreads connections over sockets of one address. On one socket that all share,
a process takes whatever waits when it wakes: often every connection."""


def reserve(*, host: str, port: int) -> socket.socket:
    """Take the address of all web processes. Raises OSError where it is taken.

    The socket only holds the address; each process listens on one of its own (`listen_on`), and
    Linux spreads the connections over them. Elsewhere all listen on this one.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if SPREADS:
        # Sockets that share an address find no other server there; one that does not share does.
        with _open(family) as alone:
            alone.bind((host, port))
    reserved = _open(family)
    try:
        if SPREADS:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def listen_on(reserved: socket.socket) -> socket.socket:
    """Open this process's own socket at the address that was taken.

    It ends with its process: while that starts again, the others get every connection.
    """
    listening = reserved
    if SPREADS:
        listening = _open(reserved.family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(reserved.getsockname())
    listening.listen(1024)
    return listening


def _open(family: int) -> socket.socket:
    # Named, or asyncio leaves Nagle's algorithm on: 40 ms for each call on a kept connection.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; its connections have it as well
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED * 1000)
    return opened


def limits() -> ConnectionLimits:
    """What the settings allow the clients of this process."""
    from django.conf import settings

    from nexus_site.serving.owners import owner_of

    return ConnectionLimits(
        connections=settings.WEB_CONNECTIONS,
        connections_per_address=settings.WEB_CONNECTIONS_PER_ADDRESS,
        bodies_of_owner=16 * 1024 * 1024,  # a quarter of all (Spec: wire 45)
        is_proxy=Proxies(settings.TRUSTED_PROXIES).is_trusted,
        owner_of=owner_of,
    )


class Server(uvicorn.Server):
    """uvicorn's server, which says when it begins to answer."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self.on_ready()


def serve(
    reserved: socket.socket,
    on_ready: Callable[[], None] = lambda: None,
    pulse: Pulse | None = None,
    application: str = "nexus_site.asgi:application",
) -> int:
    """Serve at the address that was taken until asked to stop; the exit status."""
    limit_statements()
    sys.setswitchinterval(YIELDS)
    config = configure(import_from_string(application))
    server = Server(config, on_ready)

    async def run() -> None:
        # Before the start, too: it may wait long for a database that recovers.
        beating = asyncio.create_task((pulse or Pulse()).beat_for_ever())
        await server.serve(sockets=[listen_on(reserved)])
        beating.cancel()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
    return 0 if server.started else 3


def configure(application: Any, *, grace: int = GRACE) -> uvicorn.Config:
    """How an ASGI application is served."""
    return uvicorn.Config(
        application,
        access_log=False,
        log_config=None,  # the site's own logs, which importing it sets up
        server_header=False,
        lifespan="on",
        http=bounded(limits()),
        ws="none",
        proxy_headers=False,  # serving/proxies.py believes the proxies that are named
        timeout_keep_alive=75,
        timeout_graceful_shutdown=grace,
    )


if __name__ == "__main__":  # one web process at the address it inherits, without the others
    raise SystemExit(serve(socket.socket(fileno=int(sys.argv[1])), application=sys.argv[2]))
