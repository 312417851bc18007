"""The contests over HTTP: sending, reading, claiming, and a thousand organisations in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

from lab.bench import json_files, postgres
from lab.bench.company import MANY, Company
from lab.bench.contest import Contender, Run, calls
from lab.bench.load import always, measure, post
from lab.bench.served import Served

TOOLS = "/api/v1/tools/"
FLOOR = "/api/bench/"
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
FIRST_ROUNDS = 10
"""How often every organisation calls before it is measured: a connection leads to one process."""
DRF, PLAIN = "APIView by hand", "plain view by hand"
MAIL: dict[str, object] = {
    "to": "it_manager",
    "type": "info",
    "subject": "Status",
    "body": "All is well. " * 20,
}


def mcp(tool: str, params: dict[str, object], key: str) -> bytes:
    """The bytes of a tool call over MCP."""
    named = {"name": tool, "arguments": params}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": named}
    return post("/mcp", message, key, headers=MCP)


def sending(served: Served, company: Company) -> Sequence[Contender]:
    """A mail and its event: by hand, by the product over both faces, and a refused one.

    There is an agent for each client, and they call in turn: each has a rate of its own, and one
    agent rarely calls twice at once.
    """
    port = served.port
    plain = {**MAIL, "recipient_id": company.ids["it_manager"]}
    refused = {**MAIL, "to": "ceo"}

    def each(write: Callable[[str], bytes], expected: int = 200) -> Run:
        in_turn = cycle([write(company.keys[worker]) for worker in company.workers])
        return calls(port, in_turn.__next__, expected)

    script = postgres.send_script(company.organisation.id, company.ids)
    return [
        Contender("PostgreSQL itself: send_mail", pgbench(script)),
        Contender(f"{DRF}: send", each(partial(post, FLOOR + "send", plain))),
        Contender(f"{PLAIN}: send", each(partial(post, FLOOR + "plain/send", plain))),
        Contender(
            "send_mail",
            each(partial(post, TOOLS + "send_mail", MAIL)),
            (f"{DRF}: send", f"{PLAIN}: send"),
        ),
        Contender("send_mail over MCP", each(partial(mcp, "send_mail", MAIL)), ("send_mail",)),
        Contender(
            "send_mail, denied",
            each(partial(post, TOOLS + "send_mail", refused), 403),
            ("send_mail",),
        ),
    ]


def reading(served: Served, company: Company) -> Sequence[Contender]:
    """Pages of a small list and of a large one, by turns."""
    port, keys = served.port, company.keys
    page: dict[str, object] = {"status": "all"}
    read: dict[str, object] = {"status": "read"}
    tasks: dict[str, object] = {"status": "pending", "owner": ""}
    small, large = keys["qa_worker"], keys["devops_worker"]
    few, many = company.copied_keys[0], keys["backend_worker"]

    def tool(name: str, params: dict[str, object], key: str) -> Any:
        return calls(port, always(post(TOOLS + name, params, key)))

    return [
        Contender(f"{DRF}: inbox", calls(port, always(post(FLOOR + "inbox", page, small)))),
        Contender("read_inbox, small", tool("read_inbox", page, small), (f"{DRF}: inbox",)),
        Contender("read_inbox, large", tool("read_inbox", page, large), ("read_inbox, small",)),
        Contender(
            "read_inbox read, large", tool("read_inbox", read, large), ("read_inbox, small",)
        ),
        Contender(
            "read_inbox over MCP",
            calls(port, always(mcp("read_inbox", page, small))),
            ("read_inbox, small",),
        ),
        Contender("task_list, few", tool("task_list", tasks, few)),
        Contender("task_list, many", tool("task_list", tasks, many), ("task_list, few",)),
        Contender("task_recommend, few", tool("task_recommend", {}, few)),
        Contender(
            "task_recommend, many", tool("task_recommend", {}, many), ("task_recommend, few",)
        ),
    ]


def claiming(served: Served, company: Company) -> Sequence[Contender]:
    """Claims of free tasks: by the product, by hand under a lock, and two locked JSON files.

    The files once as most write them, and once as durable as a claim in PostgreSQL.
    """
    free, port = company.free_tasks(), served.port

    def claims(path: str) -> Iterator[bytes]:
        for number, worker in zip(free, cycle(company.workers), strict=False):
            body = {"taskId": str(number), "owner": worker, "expectedVersion": 1}
            yield post(path, body, company.keys[worker])

    by_hand, files = f"{DRF}: claim", "two locked JSON files: claim"
    lasting = "two durable JSON files: claim"
    return [
        Contender(by_hand, calls(port, claims(FLOOR + "claim").__next__)),
        Contender(files, json_files.claim_tasks),
        Contender(lasting, partial(json_files.claim_tasks, lasting=True)),
        Contender(
            "task_update, claim",
            calls(port, claims(TOOLS + "task_update").__next__),
            (by_hand, files, lasting),
        ),
    ]


def in_turn(served: Served, company: Company) -> Sequence[Contender]:
    """The same call by the workers of one organisation, and by one of each of a thousand.

    No agent has read a mail, so that all get the same empty page. Each organisation has called
    before, most likely in each web process: a process compiles a policy at the first call and keeps
    it.
    """
    port, page = served.port, partial(post, TOOLS + "read_inbox", {"status": "read"})
    one = [page(company.keys[worker]) for worker in company.workers]
    many = [page(key) for key in company.copied_keys]
    before = islice(cycle(many), FIRST_ROUNDS * len(many))
    measure(ports=[port], request=before.__next__, clients=32, seconds=60.0)
    return [
        Contender("1 organisation", calls(port, cycle(one).__next__)),
        Contender(f"{MANY} organisations", calls(port, cycle(many).__next__), ("1 organisation",)),
    ]


def pgbench(script: str) -> Any:
    """The way of PostgreSQL's own client."""
    return lambda clients, seconds: postgres.measure(
        script=script, clients=clients, seconds=max(1, round(seconds))
    )
