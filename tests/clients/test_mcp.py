"""The SDK's own client, in the protocol's current revision and the one before."""

import httpx
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from orgchart.compiling import POLICIES
from tests.company import load_company
from tests.loops import run as run_loop
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("mode", "revisions"),
    [("legacy", {"2025-11-25", "2025-06-18"}), ("auto", {"2026-07-28"})],
)
def test_both_revisions_list_and_refuse(mode, revisions):
    POLICIES.clear()
    company = load_company("nexus")

    async def talk(url, headers):
        async with (
            httpx.AsyncClient(headers=headers, timeout=20) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            listed = await client.list_tools()
            refused = await client.call_tool("send_mail", {"colour": "red"})
            return client.protocol_version, listed, refused

    with serving() as url:
        for who in ("ceo", "backend_worker"):
            headers = {"Authorization": f"Bearer {company.key(who)}"}
            offered = httpx.get(f"{url}/api/v1/tools", headers=headers).json()["tools"]
            version, listed, refused = run_loop(talk(url, headers))
            assert version in revisions
            assert [t.name for t in listed.tools] == [t["name"] for t in offered]
            assert refused.is_error
            assert refused.structured_content["error_code"] == "INVALID_PARAMS"
