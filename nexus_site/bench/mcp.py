"""An MCP `tools/call` beside the same call over REST: the price of the protocol."""

from __future__ import annotations

from collections.abc import Callable

from nexus_site.bench.load import Rate, Request, always, post

REVISION = "2025-11-25"
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION}
MAIL: dict[str, object] = {
    "to": "it_manager",
    "type": "info",
    "subject": "Status",
    "body": "All is well. " * 20,
}


def rows(
    line: Callable[..., Rate],
    rate: Callable[[Request, int, int], Rate],
    keys: dict[str, str],
    *,
    clients: tuple[int, ...],
) -> None:
    """One line for each call, face and number of clients."""
    key = keys["backend_worker"]
    calls: dict[str, dict[str, object]] = {"read_inbox": {"status": "all"}, "send_mail": MAIL}
    for tool, params in calls.items():
        rest = always(post(f"/api/v1/tools/{tool}", params, key))
        mcp = always(post("/mcp", _call(tool, params), key, headers=HEADERS))
        for many in clients:
            base = line(f"{tool} over REST", many, rate(rest, many, 200))
            line(f"{tool} over MCP", many, rate(mcp, many, 200), base)


def _call(tool: str, params: dict[str, object]) -> dict[str, object]:
    named = {"name": tool, "arguments": params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": named}
