"""A message over MCP is measured before anything of it is built, whatever its revision."""

import httpx
import pytest

from ledger.models import Event
from toolbox.faces import mcp

LISTS = b"[" + b"[]," * 10_000 + b"[]]"
DEEP = b"[" * 40 + b"]" * 40
KEYS = b"{" + b",".join(b'"%d":1' % n for n in range(10_001)) + b"}"
CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": %s}'


@pytest.mark.parametrize("revision", ["", "2025-06-18", "2026-07-28", "nonsense"])
@pytest.mark.parametrize("bomb", [LISTS, DEEP, KEYS], ids=["lists", "deep", "keys"])
@pytest.mark.parametrize("whole", [CALL, b"%s"], ids=["in a call", "alone"])
def test_a_bomb_is_refused_and_recorded(company, url, monkeypatch, revision, bomb, whole):
    monkeypatch.setattr(mcp, "read_plain_call", None)  # nothing reads it
    monkeypatch.setattr(mcp, "_running", None)
    before = Event.objects.filter(tool="mcp", code="INVALID_PARAMS").count()
    headers = {
        "Authorization": f"Bearer {company.key('backend_worker')}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"MCP-Protocol-Version": revision} if revision else {}),
    }
    answer = httpx.post(f"{url}/mcp", content=whole % bomb, headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")
    assert Event.objects.filter(tool="mcp", code="INVALID_PARAMS").count() == before + 1
