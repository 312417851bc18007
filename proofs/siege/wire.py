"""Hostile bytes below the framework: smuggled requests, forms, uploads, schemes of keys."""

from collections.abc import Iterator
from itertools import product
from urllib.parse import quote

from proofs.siege.attack import CRLF, Attack, attacks, request

FORMS = (
    "/admin/login/",
    "/admin/logout/",
    "/admin/password_change/",
    "/admin/confirmation-codes/",
    "/admin/auth/user/add/",
    "/admin/auth/user/1/password/",
    "/admin/orgchart/agent/1/issue-key/",
    "/admin/orgchart/pendingchange/1/confirm/",
    "/admin/contracts/contract/issue/",
    "/admin/tasks/task/1/move/",
    "/admin/tasks/feedback/take-in/",
    "/admin/workspace/skill/look-again/",
    "/admin/governance/case/open/",
)
WORDS = (
    "' OR 1=1 --",
    "admin\x00",
    "\u202eadmin",
    "{{7*7}}",
    "%s%s%s%n",
    "<script>alert(1)</script>",
    "../../../etc/passwd",
    "a" * 20_000,
    "$(id)",
    "\r\nSet-Cookie: a=b",
)


def corpus(key: str) -> Iterator[Attack]:
    """Every class below the framework; `key` is an ordinary agent's."""
    yield from _smuggled()
    yield from _forms()
    yield from _uploads(key)
    yield from _schemes(key)
    yield from _lookups(key)


def _smuggled() -> Iterator[Attack]:
    get = b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    inner = b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    names = (
        b"Transfer-Encoding",
        b"transfer-encoding ",
        b" Transfer-Encoding",
        b"Transfer\tEncoding",
    )
    values = (
        b"chunked, identity",
        b"xchunked",
        b"chunked\x0b",
        b"identity",
        b"chunked;a",
        b"\x00chunked",
    )
    lengths = (b"", b"Content-Length: 6\r\n", b"Content-Length: 0\r\nContent-Length: 6\r\n")
    right = {0, 400, 405, 411, 413, 431, 501}
    for name, value, length in product(names, values, lengths):
        yield from attacks(
            "smuggled requests", right, get + length + name + b": " + value + 2 * CRLF + inner
        )
    for size in (
        b"-1",
        b"fffffffffffffffff",
        b"0x5",
        b"5 5",
        b"g",
        b"+5",
        b"5;" + b"a" * 70_000,
        b"",
    ):
        body = b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\nhello\r\n0\r\n\r\n"
        yield from attacks("chunks that are none", right, get + body)
    for other, length in product(
        (b"h2c", b"websocket", b"x"),
        (b"Content-Length: %d" % len(inner), b"Transfer-Encoding: chunked"),
    ):
        asks = b"Connection: upgrade\r\nUpgrade: " + other + CRLF
        yield from attacks("upgrades with bodies", right, get + asks + length + 2 * CRLF + inner)
    for version in (b"HTTP/0.9", b"HTTP/9.9", b"HTTP/1.1x", b"HTP/1.1", b"http/1.1", b"HTTP/1.1 x"):
        for path in (b"/api/v1/events", b"/api/v1/me", b"/api/v1/tools"):
            sent = b"GET " + path + b" " + version + b"\r\nHost: 127.0.0.1\r\n\r\n"
            yield from attacks("versions that are none", {0, 400, 401, 505}, sent)
    for byte in (*range(9), *range(11, 13), *range(14, 32), 127):
        for place in (b"X-A%c: b", b"X-A: b%c", b"%cX-A: b"):
            line = place.replace(b"%c", bytes([byte]))
            sent = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            yield from attacks("headers with controls", {0, 400, 404}, sent + line + 2 * CRLF)
    for method in ("TRACE", "CONNECT", "TRACK", "get", "G" * 3000, "POST\tX", "\u00e9", "PATCHX"):
        for path in ("/", "/api/v1/me", "/mcp", "/metrics", "*", "http://evil.example/"):
            right = {0, 302, 400, 401, 403, 404, 405, 421, 501}
            yield from attacks("methods that are none", right, request(method, path))


def _forms() -> Iterator[Attack]:
    kind = "Content-Type: application/x-www-form-urlencoded"
    for path, word in product(FORMS, WORDS):
        given = quote(word)
        body = f"username={given}&password={given}&next={given}&csrfmiddlewaretoken={given}"
        sent = request("POST", path, kind, body=body.encode())
        yield from attacks("forged forms", {302, 400, 403, 413}, sent)
    for path, cookie in product(FORMS, ("nexus_session=x", "nexus_csrf=" + "a" * 32, "=;=;" * 500)):
        sent = request("POST", path, kind, f"Cookie: {cookie}", body=b"a=b")
        yield from attacks("forged cookies", {302, 400, 403, 413}, sent)
    for path in FORMS:
        many = b"&".join(b"f%d=1" % n for n in range(3000))
        yield from attacks(
            "forms of many fields", {0, 302, 400, 403, 413}, request("POST", path, kind, body=many)
        )


def _uploads(key: str) -> Iterator[Attack]:
    names = ("../../x", "/etc/cron.d/x", "a\x00.csv", "x" * 5000, "a.csv\r\nX: y", '"; name="z')
    kinds = ("text/csv", "image/svg+xml", "application/x-php", "text/html")
    for name, kind, path in product(
        names, kinds, ("/admin/tasks/feedback/take-in/", "/api/v1/tools/save_artifact", "/mcp")
    ):
        part = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        body = f"{part}Content-Type: {kind}\r\n\r\nx\r\n--b--\r\n".encode()
        headers = ("Content-Type: multipart/form-data; boundary=b", f"Authorization: Bearer {key}")
        right = {302, 400, 403, 404, 406, 413, 415}
        yield from attacks("files", right, request("POST", path, *headers, body=body))
    for boundary in ("", "b" * 5000, "\x00", "--", "b; boundary=c"):
        headers = (f"Content-Type: multipart/form-data; boundary={boundary}",)
        body = b"--b\r\n" * 2000
        yield from attacks(
            "files", {0, 302, 400, 403, 413}, request("POST", "/admin/login/", *headers, body=body)
        )


def _schemes(key: str) -> Iterator[Attack]:
    for place in range(4, len(key)):
        other = "A" if key[place] != "A" else "B"
        wrong = key[:place] + other + key[place + 1 :]
        for path in ("/api/v1/me", "/api/v1/tools", "/mcp"):
            sent = request("GET", path, f"Authorization: Bearer {wrong}")
            yield from attacks("keys with one wrong letter", {401}, sent)
    for scheme in ("Basic", "Digest", "Token", "Bearer Bearer", "bearer:", "", "Bearer\t\t", "Key"):
        sent = request("GET", "/api/v1/me", f"Authorization: {scheme} {key[:-2]}")
        yield from attacks("schemes that are none", {400, 401}, sent)
    chunked = request("POST", "/api/v1/sessions", "Transfer-Encoding: chunked").removesuffix(CRLF)
    for size in (b"", b"2\r\n{}\r\n"):
        trailed = chunked + CRLF + size + b"0\r\n" + f"Authorization: Bearer {key}".encode()
        yield from attacks("schemes that are none", {401}, trailed + 2 * CRLF)
    for name in ("X-Api-Key", "Api-Key", "X-Auth-Token", "Cookie", "Proxy-Authorization"):
        sent = request("GET", "/api/v1/me", f"{name}: {key}")
        yield from attacks("schemes that are none", {401}, sent)


def _lookups(key: str) -> Iterator[Attack]:
    bearer = f"Authorization: Bearer {key}"
    lookups = (
        "organisation",
        "organisation_id",
        "agent__organisation__slug",
        "id__regex",
        "pk__in",
    )
    for base, name, value in product(
        ("/api/v1/events", "/api/v1/nothing", "/api/v1/sessions"), lookups, ("1", "'", ".*", "%00")
    ):
        sent = request("DELETE", f"{base}?{name}={value}", bearer)
        yield from attacks("look-ups in addresses", {400, 403, 404, 405}, sent)
    for room in ("orgchart/agent", "mailroom/mail", "ledger/event", "auth/user", "orgchart/apikey"):
        for name, value in product(lookups, ("1", "'", "(", "%00")):
            sent = request("GET", f"/admin/{room}/?{name}={value}")
            yield from attacks("look-ups of strangers", {302, 400}, sent)
