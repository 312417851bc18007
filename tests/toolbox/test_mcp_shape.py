"""A message over MCP is read strictly before anything of it is built, whatever its revision."""

import httpx
import pytest

from ledger.models import Event
from toolbox.faces import mcp

LISTS = b"[" + b"[]," * 10_000 + b"[]]"
DEEP = b"[" * 40 + b"]" * 40
KEYS = b"{" + b",".join(b'"%d":1' % n for n in range(10_001)) + b"}"
TWICE = b'{"name": "send_mail", "arguments": {"to": "ceo", "to": "it_manager"}}'
NOT_A_NUMBER = b'{"name": "current_time", "arguments": {"at": NaN}}'
CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": %s}'


@pytest.mark.parametrize("revision", ["", "2025-06-18", "2026-07-28", "nonsense"])
@pytest.mark.parametrize(
    "bad",
    [LISTS, DEEP, KEYS, TWICE, NOT_A_NUMBER],
    ids=["lists", "deep", "keys", "a key twice", "NaN"],
)
@pytest.mark.parametrize("whole", [CALL, b'{"more": %s}'], ids=["in a call", "in none"])
def test_what_json_forbids_us_is_refused_and_recorded(
    company, url, monkeypatch, revision, bad, whole
):
    monkeypatch.setattr(mcp, "read_plain_call", None)  # nothing reads it
    monkeypatch.setattr(mcp, "_running", None)
    before = Event.objects.filter(tool="mcp", code="INVALID_PARAMS").count()
    headers = {
        "Authorization": f"Bearer {company.key('backend_worker')}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"MCP-Protocol-Version": revision} if revision else {}),
    }
    answer = httpx.post(f"{url}/mcp", content=whole % bad, headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")
    assert Event.objects.filter(tool="mcp", code="INVALID_PARAMS").count() == before + 1


@pytest.mark.parametrize("revision", ["", "2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("number", [b"true", b"null", b"{}", b"[1]", b"1.5"])
def test_an_id_that_no_answer_can_carry_is_refused(company, url, revision, number):
    headers = {
        "Authorization": f"Bearer {company.key('backend_worker')}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"MCP-Protocol-Version": revision} if revision else {}),
    }
    call = b'{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "me"}}'
    answer = httpx.post(f"{url}/mcp", content=call % number, headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")
    assert answer.json()["message"].startswith("id: ")


def test_a_call_without_an_id_is_refused_and_recorded(company, url):
    """It was accepted (202), and neither made nor recorded."""
    before = Event.objects.filter(tool="mcp", code="INVALID_PARAMS").count()
    headers = {
        "Authorization": f"Bearer {company.key('backend_worker')}",
        "Accept": "application/json, text/event-stream",
    }
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "current_time"}}
    answer = httpx.post(f"{url}/mcp", json=call, headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")
    assert Event.objects.filter(tool="mcp", code="INVALID_PARAMS").count() == before + 1
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert httpx.post(f"{url}/mcp", json=note, headers=headers, timeout=20).status_code == 202


@pytest.mark.parametrize("revision", ["", "2025-06-18", "2026-07-28"])
def test_a_method_longer_than_any_is_not_repeated(company, url, revision):
    headers = {
        "Authorization": f"Bearer {company.key('backend_worker')}",
        "Accept": "application/json, text/event-stream",
        **({"MCP-Protocol-Version": revision} if revision else {}),
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "x" * 100_000}
    answer = httpx.post(f"{url}/mcp", json=call, headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")
    assert answer.json()["message"].startswith("method: ")
    assert len(answer.content) < 1000
