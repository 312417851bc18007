"""One hostile connection, and how it is written."""

from collections.abc import Iterator
from dataclasses import dataclass

CRLF = b"\r\n"
STREAM = 400_000  # bytes of what has no end


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile connection: what is sent, and the statuses that are a right answer (0: none)."""

    family: str
    sent: bytes
    right: frozenset[int]
    never: bytes = b""
    """What a right answer does not hold."""


def request(method: str, path: str, *headers: str, body: bytes = b"", host: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or '127.0.0.1'}", "Connection: close"]
    lines += [*headers, *([f"Content-Length: {len(body)}"] if body else [])]
    return "\r\n".join(lines).encode("latin-1") + 2 * CRLF + body


def post(path: str, body: bytes, key: str = "") -> bytes:
    headers = ["Content-Type: application/json", *([f"Authorization: Bearer {key}"] if key else [])]
    return request("POST", path, *headers, body=body)


def attacks(family: str, right: set[int], *sent: bytes) -> Iterator[Attack]:
    for one in sent:
        yield Attack(family, one, frozenset(right))
