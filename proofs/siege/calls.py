"""Hostile calls of an agent with a key that is good: tools, mail, MCP, files, sessions."""

import json
from collections.abc import Iterator
from itertools import product

from proofs.siege.attack import Attack, attacks, post, request
from toolbox.registry import REGISTRY

REFUSED = {400, 403, 404, 409, 413, 422}
BODIES = (
    {"\u202e": 1},
    {"__class__": "x"},
    {"id__regex": ".*", "organisation": 1},
    {"params": {"a": [[]]}, "expected_version": "1"},
    {"constructor": {"prototype": 1}},
    {"$where": "1", "'; DROP TABLE ledger_event; --": 1},
    {"\ud83d\ude00" * 50: None},
)
RECIPIENTS = (
    "ceo",
    "hr_manager",
    "product_manager",
    "qa_worker",
    "devops_worker",
    "board",
    "system",
)
TYPES = (
    "info",
    "report",
    "contract",
    "approval_request",
    "escalation",
    "question",
    "verdict",
    "deployment_approval",
    "tool_request",
    "staffing_request",
    "tech_review",
    "feasibility_request",
    "requirement_clarification",
)
SPELLINGS = ("{}", " {}", "{}\u200b", "{}\n")
PATHS = (
    "../secret",
    "a/../../b",
    "/etc/passwd",
    "//etc/passwd",
    "a\u0000b",
    "\\\\host\\share",
    "....//....//etc",
    "/proc/self/environ",
    "a/./../../c",
    "x" * 5000,
    "~root/.ssh/id_rsa",
    "file:///etc/passwd",
)
IDS = ("CON-0", "MAIL-'", "CASE-%", "1" * 32, "-1", "0x1", "NaN", "\u0661", "a b", "\ufeff")


def corpus(key: str) -> Iterator[Attack]:
    """Every class of call; `key` is a worker's."""
    yield from _tools(key)
    yield from _mail(key)
    yield from _files(key)
    yield from _ids(key)
    yield from _mcp(key)
    yield from _slow_texts(key)


SLOW = (
    "-",
    "- ",
    " ",
    "(",
    "a or ",
    "a, ",
    "!`",
    "$1",
    "\\",
    '"',
    "/",
    "a.",
    "\u4e00",
    "<!--",
    "%(a)s",
)
"""What makes patterns try every way there is, many times over."""


def _slow_texts(key: str) -> Iterator[Attack]:
    """Texts that a careless regular expression reads for minutes."""
    places = (
        ("memory_search", "query"),
        ("write_note", "path"),
        ("send_mail", "type"),
        ("read_url", "url"),
        ("use_skill", "name"),
        ("git_branch", "name"),
        ("task_update", "taskId"),
        ("list_agents", "role"),
    )
    right = {200, *REFUSED}  # a search for it finds nothing
    for (tool, field), text, size in product(places, SLOW, (480, 5_000, 40_000)):
        sent = _call(tool, {field: (text * size)[:size] + "\n"}, key)
        yield from attacks("texts that make patterns slow", right, sent)


def _call(tool: str, body: object, key: str) -> bytes:
    return post(f"/api/v1/tools/{tool}", json.dumps(body).encode(), key)


def _tools(key: str) -> Iterator[Attack]:
    names = sorted(tool.name for tool in REGISTRY.all())
    for name, body in product(names, BODIES):
        yield from attacks("tools with unknown words", REFUSED, _call(name, body, key))
    for name in names:
        wrong = (
            name.upper(),
            f"{name}/",
            f"{name}%20",
            f"../{name}",
            f"{name}\u0430".encode().hex(),
        )
        for one in wrong:
            sent = post(f"/api/v1/tools/{one}", b"{}", key)
            yield from attacks("tools that are none", {301, 308, *REFUSED}, sent)


def _mail(key: str) -> Iterator[Attack]:
    for recipient, kind, spelling in product(RECIPIENTS, TYPES, SPELLINGS):
        mail = {"to": spelling.format(recipient), "type": kind, "subject": "s", "body": "b"}
        yield from attacks("mail to strangers", REFUSED, _call("send_mail", mail, key))


def _files(key: str) -> Iterator[Attack]:
    for path in PATHS:
        for tool, field in (
            ("save_artifact", "name"),
            ("read_file", "path"),
            ("use_skill", "name"),
        ):
            body = {field: path, "content": "x"}
            yield from attacks("paths of files", REFUSED, _call(tool, body, key))
        mail = {"to": "it_manager", "type": "report", "subject": "s", "body": "b"}
        yield from attacks(
            "paths of files", REFUSED, _call("send_mail", {**mail, "attachments": [path]}, key)
        )


def _ids(key: str) -> Iterator[Attack]:
    for tool, field in (
        ("read_mail", "mail_id"),
        ("accept_contract", "contract_id"),
        ("close_contract", "contract_id"),
        ("task_get", "taskId"),
        ("task_update", "taskId"),
        ("return_result", "frame_id"),
        ("case_inputs", "case_id"),
    ):
        for value in (*IDS, ["x"], {"a": 1}, 2**70, -(2**70), 1e308):
            yield from attacks("ids of nothing", REFUSED, _call(tool, {field: value}, key))
    bearer = f"Authorization: Bearer {key}"
    for value in (*IDS[:7], "a" * 4000, "../x"):
        for header in ("X-Nexus-Session", "X-Session-Id", "Mcp-Session-Id", "Last-Event-ID"):
            sent = request("GET", "/api/v1/nothing", bearer, f"{header}: {value}")
            yield from attacks("ids in headers", {400, 403, 404, 431}, sent)


def _mcp(key: str) -> Iterator[Attack]:
    headers = (
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    )
    names = sorted(tool.name for tool in REGISTRY.all())
    bodies: list[object] = [
        {
            "jsonrpc": "2.0",
            "id": n,
            "method": "tools/call",
            "params": {"name": name, "arguments": one},
        }
        for n, (name, one) in enumerate(product(names, ({"\u202e": 1}, {"__proto__": []}, "x")))
    ]
    bodies += [
        {"jsonrpc": version, "id": 1, "method": method, "params": params}
        for version, method, params in product(
            ("1.0", None, 2),
            ("tools/call", "tools/list", "resources/read", "prompts/get", "x" * 3000, None, 7),
            (None, [], {"name": None}, {"name": "send_mail", "arguments": [[]]}),
        )
    ]
    bodies += [[], {}, None, 1, "x", [[]], [{}] * 300, {"a": [[]] * 3000}]
    for body in bodies:
        sent = request("POST", "/mcp", *headers, body=json.dumps(body).encode())
        right = {200, 202, *REFUSED, 405, 406, 415}
        for one in attacks("MCP bodies", right, sent):
            yield Attack(one.family, one.sent, one.right, never=b'"isError":false')
    bombs = ([[]] * 200_000, {str(n): n for n in range(60_000)}, ["x"] * 150_000)
    for bomb, revision in product(bombs, ("", "2025-06-18", "2026-07-28")):
        named = [f"MCP-Protocol-Version: {revision}"] if revision else []
        call = {"name": "read_inbox", "arguments": {"a": bomb}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        sent = request("POST", "/mcp", *headers, *named, body=body.encode())
        yield from attacks("MCP bombs", {400}, sent)
    for method, path in product(("GET", "DELETE", "PUT", "PATCH", "OPTIONS"), ("/mcp", "/mcp/x")):
        yield from attacks("MCP methods", {400, 404, 405, 406}, request(method, path, headers[0]))
