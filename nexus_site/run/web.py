"""One web process, on the socket that it shares with the others."""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from nexus_site.serving.protocol import Limits, bounded

GRACE = 5  # seconds for calls in progress when asked to stop


def listen(*, host: str, port: int) -> socket.socket:
    """Open the socket that all web processes accept from. Raises OSError where it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, or asyncio leaves Nagle's algorithm on: 40 ms for each call on a kept connection.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except OSError:
        listening.close()
        raise
    return listening


def limits() -> Limits:
    """What the settings allow the clients of this process."""
    from django.conf import settings

    proxies = (str(network.network_address) for network in settings.TRUSTED_PROXIES)
    return Limits(
        connections=settings.WEB_CONNECTIONS,
        connections_per_address=settings.WEB_CONNECTIONS_PER_ADDRESS,
        proxies=frozenset(proxies),
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


def serve(listening: socket.socket, on_ready: Callable[[], None] = lambda: None) -> int:
    """Serve until asked to stop; the exit status."""
    from nexus_site.asgi import application

    config = configure(application)
    server = Server(config, on_ready)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[listening]))
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


if __name__ == "__main__":  # one web process on the socket it inherits, without the others
    raise SystemExit(serve(socket.socket(fileno=int(sys.argv[1]))))
