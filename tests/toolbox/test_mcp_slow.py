"""A message over MCP that comes slowly: a right that ends before its body has come is gone."""

import asyncio
import json
from functools import partial

import pytest
from django.utils import timezone

from mailroom.models import Mail
from orgchart.keys import revoke_key
from orgchart.pauses.services import pause_agent
from tests.loops import run as run_loop
from toolbox.faces import mcp
from toolbox.faces.bodies import STRANGER_BODY
from toolbox.faces.threads import THREADS, in_thread
from toolbox.models import RateBucket

BEFORE, NEWEST = "2025-11-25", "2026-07-28"
SENDERS = {BEFORE: "backend_worker", NEWEST: "devops_worker"}
MAIL = {"to": "it_manager", "type": "info", "subject": "Late", "body": "Late."}


def message(revision):
    params = {"name": "send_mail", "arguments": MAIL}
    if revision == NEWEST:
        about = "io.modelcontextprotocol/"
        params["_meta"] = {
            f"{about}protocolVersion": NEWEST,
            f"{about}clientInfo": {"name": "a test", "version": "1"},
            f"{about}clientCapabilities": {},
        }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


def scope(key, revision):
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {key}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": revision,
        "mcp-method": "tools/call",
        "mcp-name": "send_mail",
    }
    return {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }


def answered(key, revision, *parts, meanwhile=lambda: None):
    """Status and text of the answer to a message; `meanwhile` happens before its first part."""
    sent, coming = [], list(parts)

    async def receive():
        if len(coming) == len(parts):
            await in_thread(meanwhile)
        if not coming:
            await asyncio.Event().wait()  # the client waits for its answer
        body = coming.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(coming)}

    async def send(part):
        sent.append(part)

    async def ask():
        async with mcp.lifespan():
            await mcp.application(scope(key, revision), receive, send)

    run_loop(ask())
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent).decode()


def revoke(company, who):
    board, key = company.person("Board"), company.keys.pop(who)
    revoke_key(prefix=key, caller=board, reason="It was copied.", now=timezone.now())


def pause(company, who):
    board = company.person("Board")
    pause_agent(person=board, agent=who, reason="It repeats itself.", now=timezone.now())


ENDS = {"UNAUTHENTICATED": revoke, "AGENT_PAUSED": pause}


class TestAMessageThatComesSlowly:
    @pytest.mark.parametrize("revision", [BEFORE, NEWEST])
    def test_does_what_its_sender_may(self, company, revision):
        body, before = message(revision), Mail.objects.filter(subject="Late").count()
        _, text = answered(company.key(SENDERS[revision]), revision, body[:20], body[20:])
        assert "delivered" in text
        assert Mail.objects.filter(subject="Late").count() == before + 1

    @pytest.mark.parametrize("revision", [BEFORE, NEWEST])
    @pytest.mark.parametrize("code", list(ENDS))
    def test_does_nothing_once_the_right_has_ended(self, company, revision, code):
        who, before = SENDERS[revision], Mail.objects.filter(subject="Late").count()
        end = partial(ENDS[code], company, who)
        _, text = answered(company.key(who), revision, message(revision), meanwhile=end)
        assert code in text
        assert Mail.objects.filter(subject="Late").count() == before

    @pytest.mark.parametrize("code", list(ENDS))
    def test_does_nothing_where_the_right_ends_behind_its_proof(self, company, monkeypatch, code):
        """The SDK's way, and others' calls for the thread, lie between the proof and the call."""
        prove, who = mcp._prove_and_answer, "frontend_worker"
        before = Mail.objects.filter(subject="Late").count()

        def proven_before(*given):
            found = prove(*given)
            ENDS[code](company, who)
            return found

        key = company.key(who)
        monkeypatch.setattr(mcp, "_prove_and_answer", proven_before)
        _, text = answered(key, NEWEST, message(NEWEST))
        assert code in text
        assert Mail.objects.filter(subject="Late").count() == before


def test_a_call_takes_of_the_rate_once(company, settings):
    """Though it is proven twice: for its message, and in the thread that makes the call."""
    settings.NEXUS_RATE_PER_MINUTE, settings.NEXUS_RATE_BURST = 1, 1
    key = company.key("qa_worker")
    RateBucket.objects.all().delete()
    _, text = answered(key, NEWEST, message(NEWEST))
    assert "delivered" in text
    _, text = answered(key, NEWEST, message(NEWEST))
    assert "RATE_LIMITED" in text
    RateBucket.objects.all().delete()


def test_of_a_stranger_little_is_read():
    status, text = answered("nxs_none", BEFORE, *[b"x" * (STRANGER_BODY // 2 + 1)] * 9)
    assert (status, json.loads(text)["error_code"]) == (413, "TOO_LARGE")


@pytest.mark.parametrize("revision", [BEFORE, NEWEST])
def test_past_the_limit_is_refused_as_too_large(company, settings, revision):
    settings.NEXUS_MAX_BODY = 100
    status, text = answered(company.key("qa_worker"), revision, message(revision))
    assert (status, json.loads(text)["error_code"]) == (413, "TOO_LARGE")


def test_a_plain_call_takes_a_thread_once(company, monkeypatch):
    """Its caller is proven, its message read and its tool called by one thread, which costs time
    and a connection of the pool each time.
    """
    taken = []
    submit = THREADS.submit

    def counted(*work):
        taken.append(work)
        return submit(*work)

    key = company.key("qa_worker")
    monkeypatch.setattr(THREADS, "submit", counted)
    _, text = answered(key, BEFORE, message(BEFORE))
    assert "delivered" in text
    # The first was `meanwhile`, before the message came.
    assert len(taken) == 2
