"""Raw sockets against one process: what a client library is too polite to send."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
import uvicorn

from nexus_site.run import web
from nexus_site.serving import protocol
from nexus_site.serving.protocol import JOINED, ConnectionLimits, JoinedAnswer, bounded
from tests.measured import turned_away
from tests.patience import PATIENCE, wait_until
from toolbox.faces.bodies import Disconnected
from toolbox.faces.threads import TURN, in_turn
from toolbox.faces.turns import Turns

LIMITS = ConnectionLimits(
    header_bytes=8 * 1024,
    header_seconds=2 * PATIENCE,
    body_seconds=2 * PATIENCE,
    write_seconds=2 * PATIENCE,
    connections=8,
    connections_per_address=5,
    bodies=200_000,
    pipelined=4,
)
"""No time in them is reached."""
BRIEF_HEADERS = replace(LIMITS, header_seconds=0.4)
BRIEF_BODIES = replace(LIMITS, body_seconds=0.6)
BRIEF_ANSWERS = replace(LIMITS, write_seconds=0.4)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


RELEASED = threading.Event()
LEFT = threading.Event()
TURNS = Turns(1)
"""Of those who ask for `/in-turn`."""


async def echo(scope, receive, send):
    """Answers with the length of the body; `/slow` when it is released, `/large` with 20 MB.

    `/headers` answers the names of all headers, when the body was read; `/cookies` what the cookies
    say. `/until-left` and `/half` of an answer wait until their client has left.
    """
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            LEFT.set()
            return
        length += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    if scope["path"] == "/half":
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"9")],
        }
        await send(start)
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
    if scope["path"] in {"/until-left", "/half"}:
        await receive()
        LEFT.set()
        return
    if scope["path"] == "/in-turn":
        TURN.set((TURNS,))
        with suppress(Disconnected), ThreadPoolExecutor(1) as pool:
            await in_turn(pool, RELEASED.wait, PATIENCE)
    if scope["path"] == "/slow":
        await asyncio.to_thread(RELEASED.wait, PATIENCE)
    content = b"x" * 20_000_000 if scope["path"] == "/large" else str(length).encode()
    if scope["path"] == "/headers":
        content = b" ".join(name for name, _ in scope["headers"])
    if scope["path"] == "/cookies":
        content = b" ".join(value for name, value in scope["headers"] if name == b"cookie")
    headers = [(b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


@contextmanager
def serving(limits=LIMITS):
    """A server with these limits; its port and its connections."""
    protocol = bounded(limits)
    config = uvicorn.Config(echo, http=protocol, log_config=None, lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    listening = web.listen_on(web.reserve(host="127.0.0.1", port=0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1], protocol.all
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(PATIENCE)
        listening.close()


@pytest.fixture(scope="module")
def server():
    with serving() as found:
        yield found


@pytest.fixture
def port(server):
    return server[0]


@pytest.fixture
def release():
    """Lets `/slow` answer."""
    RELEASED.clear()
    yield RELEASED.set
    RELEASED.set()


def connect(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    client.settimeout(PATIENCE)
    return client


def send_all(client, *parts):
    """Send until the server has enough; a client that floods learns of its end by an error."""
    try:
        for part in parts:
            client.sendall(part)
    except OSError:
        return False
    return True


def drip_until_ended(client, drop):
    wait_until(lambda: not send_all(client, drop), "it could drip for ever")


def rest_of(client):
    """What the server still says before it ends the connection."""
    content = b""
    try:
        while part := client.recv(65536):
            content += part
    except ConnectionError:
        pass
    return content


def answer(client):
    """The first line of one whole answer, while the connection stays open."""
    with client.makefile("rb") as file:
        first, length = file.readline().rstrip(), 0
        while line := file.readline().rstrip():
            name, _, value = line.partition(b": ")
            length = int(value) if name == b"content-length" else length
        file.read(length)
    return first


class TestHeaders:
    def test_may_not_be_endless(self, port):
        with connect(port) as client:
            lines = [b"GET / HTTP/1.1\r\n", *[b"X-Line: " + b"y" * 200 + b"\r\n"] * 50_000]
            assert not send_all(client, *lines)

    @pytest.mark.parametrize(
        "head",
        [
            b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 2000 + b"\r\n",
            b"GET / HTTP/1.1\r\n" + b"n" * 9000 + b": y\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: " + b"a" * 30_000,
        ],
    )
    def test_larger_than_the_limit_are_refused(self, port, head):
        before = turned_away("431")
        with connect(port) as client:
            send_all(client, head)
            assert rest_of(client).startswith(b"HTTP/1.1 431 ")
        assert turned_away("431") == before + 1

    def test_larger_in_sum_with_trailers_are_refused(self, port):
        with connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
            assert not send_all(client, *[b"X-Trailer: yyyyyyyyy\r\n"] * 200_000)

    def test_of_an_ordinary_size_are_read(self, port):
        with connect(port) as client:
            send_all(client, b"GET / HTTP/1.1\r\nX: " + b"a" * 7000 + b"\r\n\r\n")
            assert answer(client) == b"HTTP/1.1 200 OK"

    @pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
    def test_must_come_in_time(self, sent):
        with serving(BRIEF_HEADERS) as (port, _), connect(port) as client:
            send_all(client, sent)
            assert rest_of(client)[:12] in (b"", b"HTTP/1.1 408")

    @pytest.mark.parametrize("drop", [b"\r\n", b"X"])
    def test_gain_no_time_by_dripping(self, drop):
        with serving(BRIEF_HEADERS) as (port, _), connect(port) as client:
            drip_until_ended(client, drop)

    @pytest.mark.parametrize("begun", [b"\r\n", b"GET"])
    def test_of_a_second_request_must_come_in_time(self, begun):
        with serving() as (port, connections), connect(port) as client:
            send_all(client, GET)
            assert answer(client) == b"HTTP/1.1 200 OK"
            wait_until(lambda: connections.waiting)
            (connection,) = connections.waiting
            connection.limits = BRIEF_HEADERS
            send_all(client, begun)
            assert rest_of(client)[:12] in (b"", b"HTTP/1.1 408")

    def test_are_none_where_they_come_after_the_body(self, port):
        """A proxy sets those that are believed, and passes trailers on as they came."""
        chunked = b"POST /headers HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        trailed = b"\r\n1\r\nx\r\n0\r\nX-Forwarded-For: y\r\nAuthorization: z\r\n\r\n"
        last = GET.replace(b"/ ", b"/headers ").replace(
            b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"
        )
        with connect(port) as client:
            send_all(client, chunked + trailed, last)
            first, second = rest_of(client).split(b"HTTP/1.1 200 OK")[1:]
        assert first.endswith(b"\r\n\r\ntransfer-encoding")
        assert second.endswith(b"\r\n\r\nhost connection")

    def test_bring_no_cookie_that_takes_long_to_read(self, port):
        """Some releases of Python look through all the rest of a cookie for each backslash."""
        cookies = (
            b'\r\nCOOKIE: a=1; b="' + b"\\" * 2000 + b'"\r\nCookie: c=\\101\r\nConnection: close'
        )
        with connect(port) as client:
            send_all(
                client, GET.replace(b"/ ", b"/cookies ").replace(b"\r\n\r\n", cookies + b"\r\n\r\n")
            )
            assert rest_of(client).endswith(b'\r\n\r\na=1; b="" c=101')

    @pytest.mark.parametrize(
        "name", [b"Host", b"Authorization", b"X-Nexus-Session", b"Idempotency-Key"]
    )
    def test_name_one_host_one_key_and_one_session(self, port, name):
        """Of two keys REST would take both together, and MCP the last."""
        twice = (name + b": x\r\n", name.lower() + b": y\r\n")
        for given, status in ((twice[:1], b"200"), (twice, b"400")):
            head = GET.replace(b"Host: x\r\n", b"" if name == b"Host" else b"Host: x\r\n", 1)
            with connect(port) as client:
                head = head.replace(b" HTTP/1.1\r\n", b" HTTP/1.1\r\n" + b"".join(given), 1)
                send_all(client, head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                assert rest_of(client).startswith(b"HTTP/1.1 " + status), given


class TestBodies:
    @pytest.mark.parametrize("other", [b"h2c", b"websocket", b"TLS/1.3"])
    @pytest.mark.parametrize("framing", [b"Content-Length: %d", b"Transfer-Encoding: chunked"])
    @pytest.mark.parametrize("at_once", [True, False])
    def test_are_no_requests_where_another_protocol_is_asked_for(
        self, port, other, framing, at_once
    ):
        """Else a stranger's body is answered on a connection that a proxy shares with others."""
        body = GET if b"%d" in framing else b"%x\r\n%b\r\n0\r\n\r\n" % (len(GET), GET)
        length = framing.replace(b"%d", str(len(body)).encode())
        asks = b"\r\nConnection: upgrade\r\nUpgrade: " + other + b"\r\n" + length
        head = GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", asks + b"\r\n\r\n")
        with connect(port) as client:
            send_all(client, *([head + body] if at_once else [head, body]))
            said = rest_of(client)
        assert said.startswith(b"HTTP/1.1 400 ")
        assert said.count(b"HTTP/1.1 ") == 1

    def test_are_none_where_another_protocol_is_asked_for_and_ignored(self, port):
        asks = b"\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
        with connect(port) as client:
            send_all(client, GET.replace(b"\r\n\r\n", asks))
            assert answer(client).startswith(b"HTTP/1.1 200 ")

    def test_must_come_in_time(self):
        with serving(BRIEF_BODIES) as (port, _), connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nx")
            assert rest_of(client).startswith(b"HTTP/1.1 408 ")

    def test_gain_no_time_by_dripping(self):
        with serving(BRIEF_BODIES) as (port, _), connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nContent-Length: 10000\r\n\r\n")
            drip_until_ended(client, b"x")

    def test_have_a_time_of_their_own(self):
        limits = ConnectionLimits(header_seconds=PATIENCE, body_seconds=9 * PATIENCE)
        with serving(limits) as (port, connections), connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n")
            wait_until(lambda: connections.slow)
            (connection,) = connections.slow
            assert connection.timer.when() - connection.loop.time() > 5 * PATIENCE
            send_all(client, b"x")
            assert answer(client) == b"HTTP/1.1 200 OK"

    def test_have_a_budget_together(self, server):
        port, connections = server
        half = b"POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + b"x" * 150_000
        with connect(port) as slow, connect(port) as quick:
            send_all(slow, half)
            wait_until(lambda: connections.body_bytes >= 150_000)
            send_all(quick, half, b"x" * 50_000)
            assert answer(quick) == b"HTTP/1.1 200 OK"
            assert rest_of(slow) == b""
        self.wait_until_empty(connections)

    def test_are_refused_where_one_alone_is_too_large(self, server):
        port, connections = server
        with connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000)
            assert rest_of(client)[:13] in (b"HTTP/1.1 503 ", b"")
        self.wait_until_empty(connections)

    def test_are_forgotten_once_answered(self, server):
        port, connections = server
        with connect(port) as client:
            for _ in range(5):
                send_all(client, b"POST / HTTP/1.1\r\nContent-Length: 90000\r\n\r\n", b"x" * 90_000)
                assert answer(client) == b"HTTP/1.1 200 OK"
        self.wait_until_empty(connections)

    def wait_until_empty(self, connections):
        wait_until(lambda: not (connections.body_bytes or connections.total), str(connections))

    def test_may_not_be_mostly_framing(self, port):
        with connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            assert not send_all(client, *[b"1;" + b"e" * 500 + b"\r\nx\r\n"] * 50_000)

    def test_in_many_small_chunks_are_read(self, port):
        with connect(port) as client:
            send_all(client, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            send_all(client, b"20\r\n" + b"x" * 32 + b"\r\n0\r\n\r\n")
            assert answer(client) == b"HTTP/1.1 200 OK"


class TestConnections:
    def test_of_one_address_replace_the_longest_waiting(self, server):
        port, connections = server
        wait_until(lambda: not connections.total)
        with ExitStack() as stack:
            silent = [stack.enter_context(connect(port)) for _ in range(5)]
            wait_until(lambda: connections.total == 5)
            fresh = stack.enter_context(connect(port))
            send_all(fresh, GET)
            assert answer(fresh) == b"HTTP/1.1 200 OK"
            assert rest_of(silent[0]) == b""

    @pytest.mark.parametrize(
        "half",
        [
            b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nx",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
            GET.replace(b"/ ", b"/large "),
        ],
    )
    def test_whose_client_is_slow_make_room_too(self, half):
        with serving(ConnectionLimits(connections=4)) as (port, connections), ExitStack() as stack:
            slow = [stack.enter_context(connect(port)) for _ in range(4)]
            for client in slow:
                send_all(client, half)
            wait_until(lambda: len(connections.slow) == 4)
            fresh = stack.enter_context(connect(port))
            send_all(fresh, GET)
            assert answer(fresh) == b"HTTP/1.1 200 OK"
            assert not rest_of(slow[0]).endswith(b"x" * 20_000_000)

    def test_are_refused_while_all_are_at_work(self, server, release):
        port, connections = server
        wait_until(lambda: not connections.total)
        slow = GET.replace(b"/ ", b"/slow ")
        with ExitStack() as stack:
            busy = [stack.enter_context(connect(port)) for _ in range(5)]
            for client in busy:
                send_all(client, slow)
            wait_until(lambda: connections.total == 5 and not connections.waiting)
            wait_until(lambda: not connections.slow)
            late = stack.enter_context(connect(port))
            assert rest_of(late).startswith(b"HTTP/1.1 503 ")
            release()
            assert [answer(client) for client in busy] == [b"HTTP/1.1 200 OK"] * 5

    def test_are_counted_for_the_whole_process(self):
        limits = ConnectionLimits(connections=3, connections_per_address=100, header_seconds=60)
        with serving(limits) as (port, connections), ExitStack() as stack:
            clients = [stack.enter_context(connect(port)) for _ in range(20)]
            assert [rest_of(client) for client in clients[:-3]] == [b""] * 17
            assert connections.total == 3

    def test_of_a_proxy_are_not_counted_by_address(self):
        limits = ConnectionLimits(connections_per_address=2, is_proxy={"127.0.0.1"}.__contains__)
        with serving(limits) as (port, connections), ExitStack() as stack:
            for _ in range(6):
                stack.enter_context(connect(port))
            wait_until(lambda: connections.total == 6)

    def test_hold_few_requests_in_advance(self, port, release):
        with connect(port) as client:
            send_all(client, GET.replace(b"/ ", b"/slow "), GET * 5000)
            assert rest_of(client).count(b"HTTP/1.1 200 OK") <= LIMITS.pipelined + 2

    def test_that_never_read_their_answer_end(self):
        with serving(BRIEF_ANSWERS) as (port, connections), connect(port) as client:
            send_all(client, GET.replace(b"/ ", b"/large "))
            assert client.recv(1)  # it is counted, and has begun to answer
            wait_until(lambda: not connections.total)


class TestRequestsInAdvance:
    """The request that is being answered is not the last one that came."""

    @pytest.mark.parametrize("rest", [b"", b"no request\r\n\r\n", GET * LIMITS.pipelined])
    def test_leave_no_error_where_the_client_or_the_server_ends(self, port, caplog, rest):
        LEFT.clear()
        with connect(port) as client:
            client.sendall(GET.replace(b"/ ", b"/until-left ") + GET + rest)
            if rest:
                assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert LEFT.wait(PATIENCE)
        with connect(port) as client:
            client.sendall(GET)
            assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
        assert [line for line in caplog.records if line.levelname == "ERROR"] == []

    def test_put_no_refusal_into_an_answer(self, port):
        LEFT.clear()
        with connect(port) as client:
            client.sendall(GET.replace(b"/ ", b"/half ") + GET)
            found = client.recv(1000)
            while b"half" not in found:
                found += client.recv(1000)
            client.sendall(b"no request\r\n\r\n")
            with suppress(ConnectionError):
                found += client.recv(1000)
        assert found.endswith(b"\r\n\r\nhalf")
        assert LEFT.wait(PATIENCE)


class Written:
    """A transport that notes what it is told."""

    def __init__(self):
        self.parts, self.closed = [], False

    def write(self, data):
        assert not self.closed
        self.parts.append(data)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


class TestAnswers:
    def joined(self, *steps):
        """What is written at once, one list for each turn of the event loop."""
        turns, transport = [], Written()

        async def write():
            answer = JoinedAnswer(transport, asyncio.get_running_loop())
            for step in steps:
                if step is None:
                    await asyncio.sleep(0)
                elif step == "close":
                    answer.close()
                else:
                    answer.write(step)
                turns.append([*transport.parts])
                transport.parts.clear()
            await asyncio.sleep(0)
            turns.append([*transport.parts])

        asyncio.run(write())
        return turns

    def test_leave_with_their_head_in_one_piece(self):
        assert self.joined(b"head ", b"body", b"more") == [[], [b"head body"], [b"more"], []]

    def test_leave_at_once_where_only_the_head_is_there(self):
        assert self.joined(b"head", None, b"event") == [[], [b"head"], [b"event"], []]

    def test_have_no_body_or_an_empty_one(self):
        assert self.joined(b"head") == [[], [b"head"]]
        assert self.joined(b"head", b"") == [[], [b"head"], []]

    def test_end_after_all_was_written(self):
        assert self.joined(b"head", "close") == [[], [b"head"], []]
        assert self.joined(b"head", b"body", "close") == [[], [b"headbody"], [], []]

    def test_that_are_long_are_not_copied(self):
        long = b"x" * (JOINED + 1)
        assert self.joined(b"head", long) == [[], [b"head", long], []]

    def test_are_written_so_by_the_server(self, port, monkeypatch):
        written = []

        class Noted(JoinedAnswer):
            def __init__(self, transport, loop):
                super().__init__(transport, loop)
                self.real = transport
                self.transport = SimpleNamespace(
                    write=self.note, close=transport.close, is_closing=transport.is_closing
                )

            def note(self, data):
                written.append(data)
                self.real.write(data)

        monkeypatch.setattr(protocol, "JoinedAnswer", Noted)
        with connect(port) as client:
            client.sendall(GET)
            assert answer(client) == b"HTTP/1.1 200 OK"
        (whole,) = written
        assert whole.startswith(b"HTTP/1.1 200 OK")
        assert whole.endswith(b"\r\n\r\n0")


class TestAClientThatLeaves:
    @pytest.mark.parametrize("how", ["while it waits", "at once"])
    def test_leaves_nothing_that_waits_for_a_thread(self, server, release, how):
        """Else strangers fill the memory with requests that no client waits for. Spec: wire 45."""
        port, all_ = server
        asked = b"POST /in-turn HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n" + b"x" * 9000
        with socket.create_connection(("127.0.0.1", port)) as staying:
            staying.sendall(asked)
            wait_until(lambda: TURNS.taken)
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", port)) as leaving:
                    leaving.sendall(asked)
                    if how == "while it waits":
                        wait_until(lambda: TURNS.waiting)
                with connect(port) as later:  # what came before it was accepted, too
                    later.sendall(GET)
                    assert answer(later) == b"HTTP/1.1 200 OK"
                wait_until(lambda: all_.total == 1)
            wait_until(lambda: not TURNS.waiting)
            release()
            assert staying.recv(1000).startswith(b"HTTP/1.1 200")
        wait_until(lambda: not TURNS.taken)

    def test_leaves_no_body_for_the_collector_of_cycles(self, server):
        port, all_ = server
        LEFT.clear()
        kept = []
        with socket.create_connection(("127.0.0.1", port)) as leaving:
            leaving.sendall(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\nhalf")
            wait_until(lambda: any(each.held == 4 for each in all_.slow))
            kept += [each for each in all_.slow if each.held == 4]
            assert bytes(kept[0].cycle.body) in (b"half", b"")
            kept[0].cycle.body = bytearray(b"half")
        wait_until(LEFT.is_set)
        wait_until(lambda: not kept[0].cycle.body)


class TestTheBodiesOfOneOwner:
    def test_leave_room_for_those_of_others(self):
        """One agent, or strangers together, filled what there is for all, and others got 503."""
        limits = replace(
            LIMITS, connections_per_address=8, bodies_of_owner=50_000,
            owner_of=lambda headers: dict(headers).get(b"authorization", b""),
        )  # fmt: skip
        half = "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Length: 30000\r\n\r\n"
        slow = "POST /slow HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n"
        RELEASED.clear()
        with serving(limits) as (port, all_), ExitStack() as stack:

            def ask(message, size):
                asking = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                asking.settimeout(PATIENCE)
                asking.sendall(message.encode() + b"x" * size)
                return asking

            unfinished = ask(half.format("one"), 20_000)
            wait_until(lambda: all_.bytes_of[b"one"] == 20_000)
            first = ask(slow.format("one", 40_000), 40_000)
            assert unfinished.recv(1000) == b""  # it made room
            wait_until(lambda: all_.bytes_of[b"one"] == 40_000)
            assert ask(slow.format("one", 20_000), 20_000).recv(1000).startswith(b"HTTP/1.1 503")
            assert ask(half.format("two"), 30_000).recv(1000).startswith(b"HTTP/1.1 200")
            RELEASED.set()
            assert first.recv(1000).startswith(b"HTTP/1.1 200")
            wait_until(lambda: not all_.bytes_of and not all_.body_bytes)
