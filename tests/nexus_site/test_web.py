"""The socket that web processes accept from."""

import asyncio
import socket

from nexus_site.run import web
from tests.loops import run


def test_connections_send_at_once_whatever_loop_serves_them():
    """Without it every answer on a kept connection waits 40 ms for the client's ACK."""
    found = []

    async def accept():
        listening = web.listen(host="127.0.0.1", port=0)
        done = asyncio.Event()

        def met(_, writer):
            accepted = writer.get_extra_info("socket")
            found.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()
            done.set()

        async with await asyncio.start_server(met, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            await done.wait()
            writer.close()

    run(accept())
    assert found == [1]
