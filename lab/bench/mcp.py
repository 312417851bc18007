"""An MCP `tools/call` compared with the same call over REST: the price of the protocol."""

from __future__ import annotations

from collections.abc import Callable

from lab.bench.load import Rate, Request, always, post, repeat
from lab.bench.served import Served

CALLS = 300
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
    say: Callable[[str], object],
    rate: Callable[[Request, int, int], Rate],
    served: Served,
    keys: dict[str, str],
    *,
    clients: tuple[int, ...],
) -> None:
    """One line for each call, face and number of clients."""
    key = keys["backend_worker"]
    calls: dict[str, dict[str, object]] = {"read_inbox": {"status": "all"}, "send_mail": MAIL}
    for tool, params in calls.items():
        rest = post(f"/api/v1/tools/{tool}", params, key)
        mcp = post("/mcp", _call(tool, params), key, headers=HEADERS)
        for many in clients:
            base = line(f"{tool} over REST", many, rate(always(rest), many, 200))
            line(f"{tool} over MCP", many, rate(always(mcp), many, 200), base)
        say(
            f"    processor time of one {tool}: "
            f"{_cost(served, rest):.1f} ms over REST, {_cost(served, mcp):.1f} ms over MCP"
        )


def _cost(served: Served, content: bytes) -> float:
    """Milliseconds of the web processes' time for one call, whatever else the machine does."""
    before = served.cpu_seconds()
    repeat(port=served.port, content=content, times=CALLS)
    return (served.cpu_seconds() - before) / CALLS * 1000


def _call(tool: str, params: dict[str, object]) -> dict[str, object]:
    named = {"name": tool, "arguments": params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": named}
