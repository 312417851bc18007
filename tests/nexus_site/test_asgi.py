"""The one application: who answers which address, and what lives as long as the process."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace

import pytest

from nexus_site import asgi
from nexus_site.serving.handlers import ApiHandler, PeopleHandler
from tests.loops import run as run_loop


@pytest.fixture
def threads():
    with ThreadPoolExecutor(1) as threads:
        yield threads


def talk(application, scope, *messages):
    """What the application sends in one conversation."""
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    run_loop(application(scope, receive, send))
    return sent


def request(path, method="GET"):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 80),
        "scheme": "http",
    }


BODY = {"type": "http.request", "body": b"", "more_body": False}


class TestRouting:
    def ask(self, threads, path, method="GET"):
        return talk(asgi.Site(threads), request(path, method), BODY)

    def test_answers_a_program_without_sessions_and_languages(self, threads):
        start, _ = self.ask(threads, "/healthz")
        names = {name.lower() for name, _ in start["headers"]}
        assert start["status"] == 200
        assert b"x-request-id" in names
        assert not names & {b"set-cookie", b"content-language", b"vary"}

    def test_gives_people_the_whole_of_django(self, threads):
        start, _ = self.ask(threads, "/nowhere")
        names = {name.lower() for name, _ in start["headers"]}
        assert start["status"] == 404
        assert {b"content-security-policy", b"x-frame-options", b"x-request-id"} <= names

    def test_hands_a_waiting_address_to_its_face(self, threads):
        async def face(scope, receive, send):
            await send({"face": scope["path"]})

        site = asgi.Site(threads, faces={("*", "/mcp"): SimpleNamespace(application=face)})
        assert talk(site, request("/mcp", "POST"), BODY) == [{"face": "/mcp"}]

    def test_closes_a_websocket(self, threads):
        site = asgi.Site(threads)
        assert talk(site, {"type": "websocket"})[0]["type"] == "websocket.close"

    def test_builds_two_chains(self, threads):
        site = asgi.Site(threads)
        assert type(site.agents.handler) is ApiHandler
        assert type(site.people.handler) is PeopleHandler
        assert site.agents.limit < site.people.limit


class TestLifespan:
    def test_keeps_each_face_alive_once_between_start_and_end(self, threads):
        seen = []

        @asynccontextmanager
        async def lifespan():
            seen.append("in")
            yield
            seen.append("out")

        face = ModuleType("face")
        face.lifespan = lifespan
        site = asgi.Site(threads, faces={("*", "/mcp"): face, ("*", "/mcp/"): face})
        start, end = {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}
        sent = talk(site, {"type": "lifespan"}, start, end)
        assert seen == ["in", "out"]
        assert [message["type"] for message in sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]
