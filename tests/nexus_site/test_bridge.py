"""Requests as a server hands them over, answered by Django in a thread."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.http import HttpResponse, StreamingHttpResponse

from nexus_site.serving.bridge import Bridge
from nexus_site.serving.handlers import PeopleHandler
from tests.loops import run as run_loop
from toolbox.faces.bodies import STRANGER_BODY, BodyTooLarge, Disconnected, read_body

LIMIT = 10


def scope(path="/api/v1/x", method="POST", headers=(), query=b""):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 80),
        "scheme": "http",
    }


def receiving(*parts):
    """What a server hands over: these parts of a body, then nothing more."""
    messages = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, start=1)
    ]

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    return receive


class View(PeopleHandler):
    """A handler that answers with whatever it was made of."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def get_response(self, request):
        return self.answer(request)


def ask(answer, *parts, scope=scope(), receive=None):  # noqa: B008 - read only
    """The messages that a server is told to send."""
    sent = []

    async def send(message):
        sent.append(message)

    async def run():
        with ThreadPoolExecutor(2) as threads:
            site = Bridge(handler=View(answer), threads=threads, limit=LIMIT)
            await site(scope, receive or receiving(*parts), send)

    run_loop(run())
    return sent


def echo(request):
    return HttpResponse(request.body, headers={"X-Length": request.META["CONTENT_LENGTH"]})


class TestReadBody:
    def read(self, *parts, limit=LIMIT, known=True, asked=None):
        async def is_known():
            (asked if asked is not None else []).append(STRANGER_BODY)
            return known

        return run_loop(read_body(receiving(*parts), limit=limit, is_known=is_known))

    def test_joins_the_parts(self):
        assert self.read(b"a", b"b", b"", b"c") == b"abc"

    @pytest.mark.parametrize("parts", [[b"x" * 50], [b"x" * 8] * 9])
    def test_stops_one_byte_past_the_limit(self, parts):
        assert self.read(*parts) == b"x" * (LIMIT + 1)

    def test_keeps_a_body_of_exactly_the_limit(self):
        assert self.read(b"x" * 5, b"x" * 5) == b"x" * LIMIT

    def test_gives_up_when_the_client_leaves(self):
        async def leave():
            return {"type": "http.disconnect"}

        with pytest.raises(Disconnected):
            run_loop(read_body(leave, limit=LIMIT, is_known=None))

    def test_reads_no_more_of_a_stranger_than_strangers_may_send(self):
        asked = []
        with pytest.raises(BodyTooLarge):
            self.read(*[b"x" * 40_000] * 9, limit=10**6, known=False, asked=asked)
        assert asked == [STRANGER_BODY]

    def test_asks_once_who_sends_much(self):
        asked = []
        body = self.read(*[b"x" * 40_000] * 9, limit=10**6, known=True, asked=asked)
        assert len(body) == 360_000
        assert len(asked) == 1


class TestAnswer:
    def test_carries_status_headers_cookies_and_body(self):
        def view(request):
            response = HttpResponse(b"made", status=201, headers={"X-Word": "w"})
            response.set_cookie("taste", "sweet")
            return response

        start, body = ask(view, b"")
        headers = dict(start["headers"])
        assert start["status"] == 201
        assert headers[b"X-Word"] == b"w"
        assert headers[b"Content-Length"] == b"4"
        assert headers[b"Set-Cookie"] == b"taste=sweet; Path=/"
        assert body == {"type": "http.response.body", "body": b"made"}

    @pytest.mark.parametrize("charset", [b"utf-7", b"base64", b"unicode_escape", b"bogus"])
    def test_reads_address_and_form_as_utf_8_whatever_charset_is_named(self, charset):
        form = b"application/x-www-form-urlencoded; charset=" + charset
        asked = scope(headers=[(b"content-type", form)], query=b"a=%C3%A9")
        start, body = ask(
            lambda request: HttpResponse(request.GET["a"] + request.POST["b"]),
            b"b=%C3%A9",
            scope=asked,
        )
        assert (start["status"], body["body"].decode()) == (200, "éé")

    def test_tells_the_view_the_true_length_of_a_chunked_body(self):
        start, body = ask(echo, b"ab", b"cd")
        assert body["body"] == b"abcd"
        assert dict(start["headers"])[b"X-Length"] == b"4"

    def test_shows_a_view_that_a_body_is_too_long_whatever_it_declared(self):
        lying = scope(headers=[(b"content-length", b"3")])
        start, body = ask(echo, b"x" * 99, scope=lying)
        assert dict(start["headers"])[b"X-Length"] == b"11"
        assert len(body["body"]) == LIMIT + 1

    def test_ignores_a_header_spelt_to_look_like_another(self):
        def view(request):
            return HttpResponse(request.headers.get("X-Nexus-Session", "none"))

        spelt = scope(headers=[(b"x_nexus_session", b"stolen")])
        assert ask(view, b"", scope=spelt)[1]["body"] == b"none"

    def test_answers_in_a_thread(self):
        def view(request):
            return HttpResponse(str(threading.current_thread() is threading.main_thread()))

        assert ask(view, b"")[1]["body"] == b"False"

    def test_answers_nothing_to_a_client_that_left(self):
        async def leave():
            return {"type": "http.disconnect"}

        assert ask(echo, receive=leave) == []

    def test_refuses_an_address_that_is_no_text(self):
        assert ask(echo, b"", scope=scope(query=b"\xff"))[0]["status"] == 400

    def test_answers_even_when_the_error_page_fails(self):
        def view(request):
            raise RuntimeError("the error page itself")

        start, body = ask(view, b"")
        assert start["status"] == 500
        assert b"the error page itself" not in body["body"]

    def test_closes_what_it_sent(self):
        closed = []

        def view(request):
            response = HttpResponse(b"x")
            response.close = lambda: closed.append(True)
            return response

        ask(view, b"")
        assert closed == [True]


class TestStream:
    def test_sends_part_by_part_and_closes(self):
        closed = []

        def parts():
            try:
                yield from [b"one", b"", b"two"]
            finally:
                closed.append(True)

        start, *bodies = ask(lambda request: StreamingHttpResponse(parts()), b"")
        assert start["status"] == 200
        assert [body["body"] for body in bodies if body.get("body")] == [b"one", b"two"]
        assert "more_body" not in bodies[-1]
        assert closed == [True]

    def test_closes_when_the_making_fails(self):
        closed = []

        def parts():
            try:
                yield b"one"
                raise RuntimeError("broken off")
            finally:
                closed.append(True)

        with pytest.raises(RuntimeError, match="broken off"):
            ask(lambda request: StreamingHttpResponse(parts()), b"")
        assert closed == [True]


class TestJson:
    def test_reads_what_a_view_reads(self):
        def view(request):
            return HttpResponse(json.dumps(json.loads(request.body)))

        assert ask(view, b'{"a"', b":1}")[1]["body"] == b'{"a": 1}'
