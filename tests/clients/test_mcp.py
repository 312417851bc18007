"""The protocol's revisions, by the SDK's own client; foreign pages; what initialisations leave."""

import asyncio
import gc
import json

import httpx
import pytest
from mcp.server.connection import Connection
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from tests.clients.listening import connected
from tests.loops import run as run_loop
from tests.patience import wait_until
from toolbox import wake
from toolbox.faces import mcp
from toolbox.models import Session

NEWEST, BEFORE, EARLIER = "2026-07-28", "2025-11-25", "2025-06-18"


def asked(method, number=1, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def initialize(revision=EARLIER):
    client = {"name": "a test", "version": "1"}
    return asked("initialize", protocolVersion=revision, capabilities={}, clientInfo=client)


def headers(key, **more):
    accepted = {"Accept": "application/json, text/event-stream"}
    return {"Authorization": f"Bearer {key}", **accepted, **more}


def result(answer):
    """What a request was answered, as JSON or as the one event of a stream."""
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()["result"]
    lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    return json.loads(next(line for line in lines if line.strip()))["result"]


class TestEveryRevision:
    def test_is_one_of_those_that_the_sdk_knows(self):
        assert KNOWN_PROTOCOL_VERSIONS[-1] == NEWEST
        assert KNOWN_PROTOCOL_VERSIONS[-2] == BEFORE

    @pytest.mark.parametrize(("mode", "revision"), [("auto", NEWEST), ("legacy", BEFORE)])
    @pytest.mark.parametrize("who", ["ceo", "backend_worker"])
    def test_lists_calls_and_refuses_by_the_sdks_client(self, stage, url, who, mode, revision):
        key = stage.company.key(who)

        async def talk():
            async with connected(url, key, mode=mode) as client:
                return (
                    client.protocol_version,
                    client.server_capabilities,
                    await client.list_tools(),
                    await client.call_tool("read_inbox", {}),
                    await client.call_tool("send_mail", {"colour": "red"}),
                )

        version, can, listed, read, refused = run_loop(talk())
        assert version == revision
        assert can.tools.list_changed
        shown = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools]
        assert shown == stage.get(who, "/api/v1/tools?format=mcp")["tools"]
        assert (read.is_error, read.structured_content["tool_name"]) == (False, "read_inbox")
        assert refused.is_error
        assert refused.structured_content["error_code"] == "INVALID_PARAMS"

    @pytest.mark.parametrize("revision", [EARLIER, BEFORE])
    def test_that_begins_with_a_handshake_is_served_on_the_wire(self, stage, url, revision):
        key = stage.company.key("backend_worker")
        with httpx.Client(base_url=url, headers=headers(key), timeout=20, trust_env=False) as http:
            begun = result(http.post("/mcp", json=initialize(revision)))
            assert begun["protocolVersion"] == revision
            assert begun["capabilities"]["tools"] == {"listChanged": True}
            http.headers["MCP-Protocol-Version"] = revision
            said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert http.post("/mcp", json=said).status_code == 202
            listed = result(http.post("/mcp", json=asked("tools/list")))
            shown = stage.get("backend_worker", "/api/v1/tools?format=mcp")
            assert listed["tools"] == shown["tools"]
            call = asked("tools/call", name="current_time", arguments={})
            called = result(http.post("/mcp", json=call))
            assert called["structuredContent"]["ok"]
            assert not called["isError"]


class TestTheStandingStream:
    def test_needs_a_key(self, url):
        answer = httpx.get(f"{url}/mcp", headers=headers("nxs_none"), trust_env=False)
        assert answer.status_code == 401
        assert answer.json()["error_code"] == "UNAUTHENTICATED"

    def test_is_no_part_of_the_newest_revision(self, stage, url):
        mine = headers(stage.company.key("ceo"), **{"MCP-Protocol-Version": NEWEST})
        assert httpx.get(f"{url}/mcp", headers=mine, trust_env=False).status_code == 405


class TestAPage:
    @pytest.mark.parametrize("method", ["GET", "POST"])
    @pytest.mark.parametrize(
        ("more", "status"),
        [
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "http://127.0.0.1.evil.example"}, 403),
            ({"Origin": "http://evil.example:8000"}, 403),
            ({"Origin": "file://127.0.0.1"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": "evil.example"}, 421),
            ({"Host": "127.0.0.1.evil.example"}, 421),
        ],
    )
    def test_of_another_host_is_refused_whatever_it_knows(self, stage, url, method, more, status):
        mine = headers(stage.company.key("ceo"), **more)
        answer = httpx.request(method, f"{url}/mcp", headers=mine, trust_env=False)
        assert answer.status_code == status

    @pytest.mark.parametrize(
        "origin", ["http://localhost", "http://127.0.0.1:8000", "https://[::1]"]
    )
    def test_of_this_host_is_answered(self, stage, url, origin):
        mine = headers(stage.company.key("ceo"), Origin=origin)
        result(httpx.post(f"{url}/mcp", json=initialize(), headers=mine, trust_env=False))

    def test_of_an_allowed_subdomain_is_answered(self, stage, url, settings):
        settings.ALLOWED_HOSTS = [".nexus.example"]
        there = {"Host": "eu.nexus.example", "Origin": "https://admin.nexus.example"}
        mine = headers(stage.company.key("ceo"), **there)
        result(httpx.post(f"{url}/mcp", json=initialize(), headers=mine, trust_env=False))


def kept():
    """Whatever the server might keep of a client."""
    held = (StreamableHTTPServerTransport, Connection)
    gc.collect()
    return sum(issubclass(type(thing), held) for thing in gc.get_objects())


def test_a_thousand_initialisations_leave_nothing(stage, url, settings):
    settings.NEXUS_RATE_PER_MINUTE = settings.NEXUS_RATE_BURST = 1_000_000
    key = stage.company.key("backend_worker")
    stage.get("backend_worker", "/api/v1/me")
    rows, before = Session.objects.count(), kept()

    async def knock(http, times):
        for _ in range(times):
            answer = await http.post("/mcp", json=initialize())
            assert result(answer)["protocolVersion"] == EARLIER
            assert "mcp-session-id" not in answer.headers

    async def thousand():
        async with httpx.AsyncClient(base_url=url, headers=headers(key), timeout=60) as http:
            await asyncio.gather(*(knock(http, 125) for _ in range(8)))

    run_loop(thousand())
    manager = mcp._running
    assert (manager._server_instances, manager._session_owners) == ({}, {})
    wait_until(lambda: kept() <= before)
    assert wake.WAITERS._waiting == {}
    assert Session.objects.count() == rows
