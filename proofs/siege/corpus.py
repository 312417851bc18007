"""What strangers and agents send who want to do harm: bytes on a socket, by class."""

import json
from collections.abc import Iterator

from proofs.siege import calls, wire
from proofs.siege.attack import CRLF, STREAM, Attack, attacks, post, request

CODINGS = (b"identity", b"chunked, identity", b"xchunked", b"chunked;q=1", b"chunked\x0b")


def corpus(key: str) -> Iterator[Attack]:
    """Every attack; `key` is an ordinary agent's."""
    yield from _headers()
    yield from _strangers()
    yield from _hosts_and_schemes(key)
    yield from _json(key)
    yield from _paths(key)
    yield from _keys(key)
    yield from calls.corpus(key)
    yield from wire.corpus(key)


def _headers() -> Iterator[Attack]:
    get = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for name in (b"X-A", b"Cookie", b"Authorization", b"Accept", b"X-Forwarded-For"):
        endless = get + (name + b": " + b"y" * 90 + CRLF) * (STREAM // 100)
        long = get + name + b": " + b"y" * STREAM
        yield from attacks("headers without end", {0, 431}, endless, long)
    yield from attacks(
        "requests that are none",
        {0, 400, 431},
        *(bytes([byte]) * 64 + 2 * CRLF for byte in range(256) if byte not in (10, 13)),
        *(get + b"Content-Length: " + n + 2 * CRLF for n in (b"-1", b"+1", b"1e3", b"9" * 30)),
        get + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        get + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        *(get + b"Host: " + host + 2 * CRLF for host in (b"127.0.0.1", b"evil.example", b"")),
        *(get + b"Transfer-Encoding: " + coding + 2 * CRLF for coding in CODINGS),
        b"GET /" + b"a" * STREAM + b" HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    )


def _strangers() -> Iterator[Attack]:
    large = b"a=" + b"x" * STREAM
    for path in ("/admin/login/", "/", "/admin/", "/api/v1/tools/send_mail", "/api/v1/sessions"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            sent = request(method, path, body=large)
            yield from attacks("large bodies of strangers", {0, 413}, sent)


def _hosts_and_schemes(key: str) -> Iterator[Attack]:
    bearer = f"Authorization: Bearer {key}"
    for host in ("evil.example", "127.0.0.1.evil.example", "nexus", "[::2]", "127.0.0.2", "a b"):
        for path in ("/api/v1/me", "/api/schema/", "/api/docs/", "/admin/login/"):
            sent = request("GET", path, bearer, host=host)
            yield from attacks("foreign hosts", {400, 421}, sent)
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example", "file://"):
        sent = request("GET", "/api/v1/me", bearer, f"Origin: {origin}")
        yield from attacks("foreign pages", {403}, sent)
    for address in ("127.0.0.1", "::1", "localhost"):
        for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            sent = request("GET", "/admin/", f"{name}: {address}")
            yield from attacks("believed headers", {302}, sent)


def _json(key: str) -> Iterator[Attack]:
    bombs = [
        b'{"a": [' + b"[]," * 300_000 + b"[]]}",
        b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b"}",
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"a": 1' + b"0" * 100_000 + b"}",
        b'{"a": 1e999}',
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
        b'{"a": "\\u0000"}',
        b'{"a": 1, "a": 2}',
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{" + b",".join(b'"%d":1' % n for n in range(900)) + b"}",
        b'{"a": "' + b"," * 10_001 + b'\\"' * 400_000,
        b'{"a": "' + b"x, " * 300_000 + b'"}',
        b'{"a": "' + b"," * 10_001 + b'"' + b'""' * 400_000 + b"}",
    ]
    for tool in ("send_mail", "read_inbox", "task_create", "issue_contract", "write_report"):
        for bomb in bombs:
            sent = post(f"/api/v1/tools/{tool}", bomb, key)
            yield from attacks("bodies that are bombs", {400, 403, 404, 413}, sent)
            yield from attacks(
                "bombs of strangers", {0, 401, 413}, post(f"/api/v1/tools/{tool}", bomb)
            )
    for value in (None, True, -1, 2**63, "", [], {}, "\u202e", "x" * 5000, ["a"] * 100):
        for field in ("to", "type", "subject", "body", "reply_to", "contract_ref"):
            body = json.dumps({"to": "it_manager", "type": "nonsense", field: value}).encode()
            sent = post("/api/v1/tools/send_mail", body, key)
            yield from attacks("parameters that are wrong", {400, 403, 404}, sent)


def _paths(key: str) -> Iterator[Attack]:
    bearer = f"Authorization: Bearer {key}"
    wrong = ("%00", "%2e%2e", "..", "%ff", "'", "%0a", "a" * 3000, "%25", "{}", "\u00ff")
    for base in ("/api/v1/tools/", "/api/v1/hooks/feedback/", "/api/v1/sessions/", "/admin/", "/"):
        for end in wrong:
            for method in ("GET", "POST", "DELETE", "PROPFIND"):
                sent = request(method, f"{base}{end}", bearer)
                right = {0, 301, 302, 400, 401, 403, 404, 405}
                yield from attacks("addresses that are none", right, sent)


def _keys(key: str) -> Iterator[Attack]:
    wrong = (
        key[:-1],
        key + "x",
        key.upper(),
        "nxs_",
        "",
        "nxs_" + "a" * 300,
        key[::-1],
        "' OR 1=1",
    )
    for one in wrong:
        for path in ("/api/v1/me", "/api/v1/tools", "/api/v1/events", "/mcp", "/metrics"):
            sent = request("GET", path, f"Authorization: Bearer {one}", "Accept: application/json")
            right = {200, 401} if path == "/metrics" else {401}  # open to this machine
            yield from attacks("keys that are none", right, sent)
    for path in ("/api/v1/me", "/api/v1/tools"):
        yield from attacks("keys in an address", {401}, request("GET", f"{path}?key={key}"))
