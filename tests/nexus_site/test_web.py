"""The socket that web processes accept from."""

import asyncio
import socket
import sys

import pytest

from nexus_site.run import web
from nexus_site.run.pulse import Pulse
from tests.loops import run


def accepted_with(option):
    """What an option of a connection is where it is served."""
    found = []

    async def accept():
        listening = web.listen_on(web.reserve(host="127.0.0.1", port=0))
        done = asyncio.Event()

        def met(_, writer):
            accepted = writer.get_extra_info("socket")
            found.append(accepted.getsockopt(socket.IPPROTO_TCP, option))
            writer.close()
            done.set()

        async with await asyncio.start_server(met, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            await done.wait()
            writer.close()

    run(accept())
    return found[0]


def test_connections_send_at_once_whatever_loop_serves_them():
    """Without it every answer on a kept connection waits 40 ms for the client's ACK."""
    assert accepted_with(socket.TCP_NODELAY) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems decide by themselves")
def test_connections_whose_network_was_cut_end_after_a_minute():
    assert accepted_with(socket.TCP_USER_TIMEOUT) == 1000 * web.VANISHED == 60_000


async def slow_to_start(scope, receive, send):
    """An application that waits for its database before it serves, and then does not start."""
    await receive()
    await asyncio.sleep(0.1)
    await send({"type": "lifespan.startup.failed", "message": ""})


@pytest.fixture
def chosen(monkeypatch):
    """The switch intervals that a process chose; this one keeps its own."""
    found = []
    monkeypatch.setattr(sys, "setswitchinterval", found.append)
    return found


def test_beats_before_it_serves(chosen):
    """A start that waits for a database which recovers is not silent."""
    pulse = Pulse()
    with web.reserve(host="127.0.0.1", port=0) as reserved, pytest.raises(SystemExit):
        web.serve(reserved, pulse=pulse, application=f"{__name__}:slow_to_start")
    assert pulse.memory[0] == 1


def test_gives_way_where_it_computes_for_long(chosen):
    """One call that computes would make all others wait 5 ms each time they want Python's lock."""
    with web.reserve(host="127.0.0.1", port=0) as reserved, pytest.raises(SystemExit):
        web.serve(reserved, application=f"{__name__}:slow_to_start")
    assert chosen == [0.0005]


class TestReserve:
    def test_spreads_connections_over_the_processes(self):
        with web.reserve(host="127.0.0.1", port=0) as reserved:
            one, other = web.listen_on(reserved), web.listen_on(reserved)
            with one, other:
                clients = [socket.create_connection(reserved.getsockname()) for _ in range(40)]
                got = [accept_all(one), accept_all(other)]
                assert sum(got) == 40
                assert min(got) > 0
                for client in clients:
                    client.close()

    def test_refuses_an_address_that_another_server_listens_at(self):
        with (
            web.reserve(host="127.0.0.1", port=0) as first,
            web.listen_on(first),
            pytest.raises(OSError, match="in use"),
        ):
            web.reserve(host="127.0.0.1", port=first.getsockname()[1])


def accept_all(listening: socket.socket) -> int:
    listening.setblocking(False)
    count = 0
    while True:
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1
