"""REST, MCP and the event stream over a real server: one door, the same answers, nothing missed."""

import json
import threading
import time
import uuid
from contextlib import contextmanager

import httpx
import pytest
from django.utils import timezone
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from ledger.models import Event
from mailroom.models import Mail
from orgchart.keys import revoke_key
from tasks.models import Task
from tests.contracts import world as contracts
from tests.loops import run as run_loop
from tests.patience import PATIENCE, wait_until
from toolbox import wake
from toolbox.faces.long_poll import LONGEST
from toolbox.models import IdempotencyRecord

MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}


def proof(company, who):
    return {"Authorization": f"Bearer {company.key(who)}"}


def rest(url, company, who, tool, **params):
    answer = httpx.post(
        f"{url}/api/v1/tools/{tool}",
        json=params,
        headers=proof(company, who),
        timeout=LONGEST + PATIENCE,
    )
    return answer.json()


def keyed_rest(url, company, who, key, tool, **params):
    headers = {**proof(company, who), "Idempotency-Key": key}
    return httpx.post(
        f"{url}/api/v1/tools/{tool}", json=params, headers=headers, timeout=LONGEST + PATIENCE
    ).json()


def keyed_mcp(url, company, who, key, tool, **params):
    headers = {**proof(company, who), "Idempotency-Key": key}
    (answer,) = over_mcp(url, headers, lambda session: session.call_tool(tool, params))
    return answer.structured_content


def over_mcp(url, headers, *asks):
    """What a real MCP client is answered, in one session."""

    async def talk():
        async with (
            httpx.AsyncClient(headers=headers, timeout=LONGEST + PATIENCE) as http,
            streamable_http_client(f"{url}/mcp", http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            return [await ask(session) for ask in asks]

    return run_loop(talk())


def message(url, company, who, revision, tool, **params):
    """The answer to a call whose client asks for its progress, as most clients do."""
    meta = {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": tool, "arguments": params, "_meta": meta}
    answer = httpx.post(
        f"{url}/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        headers={
            **proof(company, who),
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": revision,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        },
        timeout=PATIENCE,
    )
    streamed = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return json.loads(streamed[-1] if streamed else answer.text)


@contextmanager
def watching(url, headers):
    """An open event stream; the events as they come."""
    events, ready = [], threading.Event()
    client = httpx.Client(timeout=PATIENCE)

    def watch():
        try:
            with client.stream("GET", f"{url}/api/v1/events", headers=headers) as answer:
                event = {}
                for line in answer.iter_lines():
                    if line.startswith(": watching"):
                        ready.set()
                    name, _, value = line.partition(": ")
                    if name in ("id", "event", "data"):
                        event[name] = value
                    elif not line:
                        if "data" in event:
                            events.append({**event, "data": json.loads(event["data"])})
                        event = {}
        except (httpx.HTTPError, RuntimeError):
            pass  # closed below

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield events
    finally:
        client.close()
        thread.join(0.1)


class TestMcp:
    def test_lists_what_rest_lists(self, company, url):
        for who in ("ceo", "backend_worker", "qa_worker"):
            answer = httpx.get(f"{url}/api/v1/tools?format=mcp", headers=proof(company, who))
            (listed,) = over_mcp(url, proof(company, who), lambda s: s.list_tools())
            assert [t.name for t in listed.tools] == [t["name"] for t in answer.json()["tools"]]

    @pytest.mark.parametrize(
        ("tool", "params"),
        [
            ("send_mail", {**MAIL, "to": "ceo"}),
            ("send_mail", {**MAIL, "type": "tool_request"}),
            ("send_mail", {**MAIL, "colour": "red"}),
            ("create_contract", {}),
            ("write_file", {"path": "x", "content": "x"}),
            ("read_mail", {"mail_id": "MAIL-1"}),
            ("no_such_tool", {}),
        ],
    )
    def test_refuses_as_rest_refuses(self, company, url, tool, params):
        expected = rest(url, company, "backend_worker", tool, **params)
        (found,) = over_mcp(
            url, proof(company, "backend_worker"), lambda s: s.call_tool(tool, params)
        )
        assert found.is_error
        assert json.loads(found.content[0].text) == expected == found.structured_content

    @pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
    @pytest.mark.parametrize("held", ["keys", "levels", "marks"])
    def test_answers_more_than_a_body_may_hold(self, company, url, held, revision):
        metadata = {
            "keys": {str(number): number for number in range(1001)},  # of several calls
            "levels": json.loads('{"a":' * 31 + "1" + "}" * 31),
            "marks": {"printed by a program": "e" + "\u0301" * 31},
        }[held]
        task = rest(url, company, "it_manager", "task_create", subject="Much")["result"]
        Task.objects.filter(number=int(task["id"])).update(metadata=metadata)
        asked = rest(url, company, "it_manager", "task_get", taskId=task["id"])
        assert asked["result"]["metadata"] == metadata
        changing = {"taskId": task["id"], "status": "in_progress"}
        answer = message(url, company, "it_manager", revision, "task_update", **changing)
        body = answer["result"]["structuredContent"]
        assert (body["result"]["status"], body["result"]["metadata"]) == ("in_progress", metadata)
        assert json.loads(answer["result"]["content"][0]["text"]) == body

    def test_does_what_rest_does(self, company, url):
        (found,) = over_mcp(
            url, proof(company, "backend_worker"), lambda s: s.call_tool("send_mail", MAIL)
        )
        body = found.structured_content
        assert (found.is_error, body["ok"], body["tool_name"]) == (False, True, "send_mail")
        read = rest(url, company, "it_manager", "read_mail", mail_id=body["result"]["mail_id"])
        assert read["result"]["from"] == "backend_worker"

    @pytest.mark.parametrize(
        ("who", "params", "status"),
        [
            ("backend_worker", MAIL, 200),
            ("backend_worker", {**MAIL, "to": "ceo"}, 403),
            (None, MAIL, 401),
        ],
        ids=str,
    )
    def test_is_measured_as_rest_is(self, company, url, who, params, status):
        def counted():
            text = httpx.get(f"{url}/metrics").text
            kind = f'_count{{method="POST",route="mcp",status="{status}"}} '
            return sum(float(row.split()[-1]) for row in text.splitlines() if kind in row)

        before = counted()
        call = {"name": "send_mail", "arguments": params}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {"Accept": "application/json"} | (proof(company, who) if who else {})
        httpx.post(f"{url}/mcp", json=message, headers=headers)
        assert counted() == before + 1

    @pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer nxs_wrong"}])
    def test_knows_nobody_without_a_key(self, url, headers):
        answer = httpx.post(f"{url}/mcp", json={}, headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (401, "UNAUTHENTICATED")


class TestEvents:
    def test_bring_mails_refusals_and_contracts_to_whom_they_concern(self, company, url):
        with (
            watching(url, proof(company, "backend_worker")) as mine,
            watching(url, proof(company, "qa_worker")) as others,
        ):
            rest(url, company, "it_manager", "send_mail", **{**MAIL, "to": "backend_worker"})
            rest(url, company, "backend_worker", "send_mail", **{**MAIL, "to": "ceo"})
            contract = contracts.issue(company)
            wait_until(lambda: {"mail", "tool_denied"} <= {e["event"] for e in mine})
            wait_until(lambda: any(contract in json.dumps(e["data"]) for e in mine))
            last = rest(url, company, "it_manager", "send_mail", **{**MAIL, "to": "qa_worker"})
            wait_until(lambda: others)
        denied = next(e for e in mine if e["event"] == "tool_denied")
        assert (denied["data"]["code"], denied["data"]["tool"]) == ("CONTACT_DENIED", "send_mail")
        seen = {name: denied["data"][name] for name in ("tool_name", "error_code", "mode")}
        assert seen == {
            "tool_name": "send_mail",
            "error_code": "CONTACT_DENIED",
            "mode": "chat_safe",
        }  # Spec: modes 17
        assert "it_manager" in denied["data"]["next_action"]
        assert denied["data"]["message"] == denied["data"]["reason"]
        assert denied["data"]["details"]["rule"]
        subjects = [event["data"]["subject"] for event in others]
        assert subjects == [f"mail:{last['result']['mail_id']}"]
        contracts.close(company, contract, "cancelled")

    def test_resume_after_the_last_one_seen_without_gap_or_repetition(self, company, url):
        headers = proof(company, "frontend_worker")
        to_frontend = {**MAIL, "to": "frontend_worker"}
        with watching(url, headers) as first:
            rest(url, company, "it_manager", "send_mail", **to_frontend)
            wait_until(lambda: first)
        for _ in range(5):
            rest(url, company, "it_manager", "send_mail", **to_frontend)
        with watching(url, {**headers, "Last-Event-ID": first[-1]["id"]}) as later:
            wait_until(lambda: len(later) >= 5)
        subjects = [e["data"]["subject"] for e in [*first, *later]]
        assert len(subjects) == len(set(subjects)) == 6

    @pytest.mark.parametrize("place", ["x", "1", "1-2-3", "-1-1", "9" * 30 + "-1"])
    def test_do_not_begin_at_a_place_that_is_none(self, company, url, place):
        headers = {**proof(company, "qa_worker"), "Last-Event-ID": place}
        refused = Event.objects.filter(actor="agent:qa_worker", tool="events")
        before = refused.count()
        answer = httpx.get(f"{url}/api/v1/events", headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")
        assert refused.count() == before + 1

    def test_need_a_key(self, url):
        assert httpx.get(f"{url}/api/v1/events").status_code == 401


class TestIdempotencyOverMcp:
    def test_does_the_work_once_and_gives_the_first_answer_again(self, company, url):
        key, subject = uuid.uuid4().hex, uuid.uuid4().hex
        mail = {**MAIL, "subject": subject}
        first = keyed_mcp(url, company, "qa_worker", key, "send_mail", **mail)
        assert first["ok"]
        assert keyed_mcp(url, company, "qa_worker", key, "send_mail", **mail) == first
        assert keyed_rest(url, company, "qa_worker", key, "send_mail", **mail) == first
        assert Mail.objects.filter(subject=subject).count() == 1

    @pytest.mark.parametrize(
        ("tool", "params"), [("send_mail", {**MAIL, "body": "Another."}), ("read_inbox", {})]
    )
    def test_is_a_mismatch_with_another_call(self, company, url, tool, params):
        key = uuid.uuid4().hex
        assert keyed_mcp(url, company, "qa_worker", key, "send_mail", **MAIL)["ok"]
        other = keyed_mcp(url, company, "qa_worker", key, tool, **params)
        assert (other["error_code"], other["tool_name"]) == ("IDEMPOTENCY_MISMATCH", tool)

    def test_takes_no_odd_key(self, company, url):
        odd = keyed_mcp(url, company, "qa_worker", "k" * 256, "send_mail", **MAIL)
        assert odd["error_code"] == "INVALID_PARAMS"

    def test_concerns_calls_alone(self, company, url):
        headers = {**proof(company, "qa_worker"), "Idempotency-Key": uuid.uuid4().hex}
        one, two = over_mcp(url, headers, lambda s: s.list_tools(), lambda s: s.list_tools())
        assert one.tools == two.tools
        assert not IdempotencyRecord.objects.filter(key=headers["Idempotency-Key"]).exists()


class TestWaiting:
    def test_for_a_mail_ends_when_it_arrives(self, company, url):
        done = []
        waiting = threading.Thread(
            target=lambda: done.append(
                rest(url, company, "research_worker", "read_inbox", wait=LONGEST)
            )
        )
        company.key("research_worker")
        waiting.start()
        wait_until(lambda: company.agent("research_worker").id in wake.WAITERS._waiting)
        assert not done
        begun = time.monotonic()
        mail = {**MAIL, "to": "research_worker"}
        rest(url, company, "product_manager", "send_mail", **mail)
        waiting.join()
        assert time.monotonic() - begun < LONGEST / 2
        assert [m["from"] for m in done[0]["result"]["mails"]] == ["product_manager"]

    @pytest.mark.parametrize("ask", [keyed_rest, keyed_mcp])
    def test_with_an_idempotency_key_wakes_and_keeps_what_came(self, company, url, ask):
        key, done = uuid.uuid4().hex, []
        company.key("devops_worker")
        waiting = threading.Thread(
            target=lambda: done.append(
                ask(url, company, "devops_worker", key, "read_inbox", wait=LONGEST)
            )
        )
        waiting.start()
        wait_until(lambda: company.agent("devops_worker").id in wake.WAITERS._waiting)
        assert not IdempotencyRecord.objects.filter(key=key).exists()
        sent = rest(url, company, "it_manager", "send_mail", **{**MAIL, "to": "devops_worker"})
        waiting.join()
        assert [m["mail_id"] for m in done[0]["result"]["mails"]] == [sent["result"]["mail_id"]]
        rest(url, company, "devops_worker", "read_mail", mail_id=sent["result"]["mail_id"])
        again = ask(url, company, "devops_worker", key, "read_inbox", wait=LONGEST)
        assert again == done[0]
        other = ask(url, company, "devops_worker", key, "read_inbox", wait=0)
        assert other["error_code"] == "IDEMPOTENCY_MISMATCH"

    @pytest.mark.parametrize("ask", [keyed_rest, keyed_mcp])
    def test_with_an_idempotency_key_keeps_an_empty_end(self, company, url, ask):
        key = uuid.uuid4().hex
        first = ask(url, company, "hr_manager", key, "read_inbox", wait=1)
        assert first["result"]["mails"] == []
        assert IdempotencyRecord.objects.get(key=key).status == 200
        assert ask(url, company, "hr_manager", key, "read_inbox", wait=1) == first

    def test_for_nothing_ends_with_patience(self, company, url):
        begun = time.monotonic()
        answer = rest(url, company, "hr_manager", "read_inbox", wait=1)
        assert answer["result"]["mails"] == []
        assert time.monotonic() - begun > 0.9

    def test_with_a_key_that_is_revoked_meanwhile_ends_in_401(self, company, url):
        done = []
        key = company.key("devops_worker")
        waiting = threading.Thread(
            target=lambda: done.append(
                rest(url, company, "devops_worker", "read_inbox", wait=LONGEST)
            )
        )
        waiting.start()
        wait_until(lambda: company.agent("devops_worker").id in wake.WAITERS._waiting)
        begun = time.monotonic()
        revoke_key(prefix=key[:12], caller=company.system, now=timezone.now(), reason="lost")
        rest(url, company, "it_manager", "send_mail", **{**MAIL, "to": "devops_worker"})
        waiting.join()
        assert time.monotonic() - begun < LONGEST / 2
        assert done[0]["error_code"] == "UNAUTHENTICATED"
        del company.keys["devops_worker"]
