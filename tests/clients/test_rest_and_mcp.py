"""REST and MCP give the same answer to the same call, for every tool and several denials."""

import json

import httpx
import pytest

from orgchart.compiling import POLICIES
from tests.company import load_company
from tests.server import serving
from toolbox.registry import REGISTRY

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = ("backend_worker", "ceo")
BAD = ({"no_such_field": 1}, {"to": 7, "path": [], "taskId": None})


@pytest.fixture
def company():
    POLICIES.clear()
    return load_company("nexus")


@pytest.fixture
def url(company):
    with serving() as url:
        yield url


def over_rest(http, tool, params):
    return http.post(f"/api/v1/tools/{tool}", json=params).json()


def over_mcp(http, tool, params):
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": params},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    answer = http.post("/mcp", json=asked, headers=headers)
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()["result"]
    lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    return json.loads(next(line for line in lines if line.strip()))["result"]


@pytest.mark.parametrize("params", BAD, ids=["unknown field", "wrong types"])
@pytest.mark.parametrize("handle", CALLERS)
def test_refuse_alike_for_every_tool(company, url, handle, params):
    headers = {"Authorization": f"Bearer {company.key(handle)}"}
    names = [tool.name for tool in REGISTRY.all()] + ["no_such_tool"]
    with httpx.Client(base_url=url, headers=headers, timeout=20) as http:
        for name in names:
            rest, mcp = over_rest(http, name, params), over_mcp(http, name, params)
            assert not rest["ok"], name
            assert mcp["isError"], name
            assert mcp["structuredContent"] == rest, name


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 421)],
    ids=["origin", "host"],
)
def test_a_foreign_page_is_refused(company, url, headers, status):
    proof = {"Authorization": f"Bearer {company.key('ceo')}"}
    answer = httpx.post(f"{url}/mcp", json={}, headers=proof | headers)
    assert answer.status_code == status


def test_the_protocol_keeps_no_session(company, url):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {
        "Authorization": f"Bearer {company.key('ceo')}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    answer = httpx.post(f"{url}/mcp", json=asked, headers=headers)
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
