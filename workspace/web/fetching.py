"""One page of the web: the checked address is called, redirects are checked, everything ends."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import httpx

from core.decision import Code, Denied, refuse
from core.outgoing import (
    FAILURES,
    AddressRefused,
    Destination,
    NotResolved,
    close_after,
    resolve_once,
    trusted,
)
from toolbox.caller import Caller
from workspace.web import rules

LONGEST = 15.0
"""Seconds that a page may take, with name servers and all redirects."""
CONNECT = 5.0
MOST_BYTES = 2_000_000
"""Bytes of a page that are read, on the wire and unpacked."""
MOST_PIECES = 20_000
"""Pieces of a body that are read: of one byte each, they would take a processor ten seconds."""
MOST_REDIRECTS = 5
MOST_ADDRESSES = 3
HEADERS = {
    "User-Agent": "NEXUS",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip",
}
PACKED = frozenset({"gzip", "x-gzip", "deflate"})


class BadPage(Exception):
    """The server's answer cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """What an address answered; `cut` says that there was more than is read."""

    url: str
    status: int
    kind: str
    charset: str
    body: bytes
    cut: bool


def fetch(url: str, *, caller: Caller) -> FetchedPage:
    """Read a page. Every address on the way is decided on before it is called.

    Raises Denied: SCOPE_DENIED or INVALID_PARAMS for an address or an answer that may not be read,
    DRIVER_UNAVAILABLE for one that cannot be reached in time (Spec: hands 12, hands 13).
    """
    ends = time.monotonic() + LONGEST
    for _ in range(MOST_REDIRECTS + 1):
        caller.require(rules.can_fetch(url))
        try:
            answer = _read(url, caller, ends)
        except AddressRefused:
            raise Denied(rules.inside(url)) from None
        except (NotResolved, BadPage, *FAILURES) as problem:
            raise unreachable(url, str(problem) or type(problem).__name__) from problem
        if isinstance(answer, FetchedPage):
            return answer
        url = answer
    raise unreachable(url, f"more than {MOST_REDIRECTS} redirects")


def _read(url: str, caller: Caller, ends: float) -> FetchedPage | str:
    """The page, or the address that its server sends the reader to."""
    to = resolve_once(url, internal=False, within=min(CONNECT, _left(ends)))
    problem: Exception = BadPage("no address")
    for address in to.addresses[:MOST_ADDRESSES]:
        try:
            return _ask(url, to, to.url(address), caller, ends)
        except httpx.ConnectError as failure:
            problem = failure
    raise problem


def _ask(
    url: str, to: Destination, numbered: str, caller: Caller, ends: float
) -> FetchedPage | str:
    left = _left(ends)
    with (
        close_after(left) as trace,
        httpx.Client(
            timeout=httpx.Timeout(left, connect=min(CONNECT, left)),
            follow_redirects=False,
            trust_env=False,
            verify=trusted(),
        ) as client,
        client.stream(
            "GET",
            numbered,
            headers={**HEADERS, "Host": to.host_header},
            extensions={**to.extensions, "trace": trace},
        ) as response,
    ):
        onward = rules.redirect_target(
            url, response.status_code, response.headers.get("Location", "")
        )
        if onward:
            return onward
        kind, charset = rules.media_type(response.headers.get("Content-Type", ""))
        caller.require(rules.can_read(kind, url))
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        body, cut = unpacked(response.iter_raw(), coding)
        _left(ends)  # a connection that was cut off looks like the end of the page
    return FetchedPage(
        url=url, status=response.status_code, kind=kind, charset=charset, body=body, cut=cut
    )


def _left(ends: float) -> float:
    """The seconds until the end. Raises BadPage after it."""
    left = ends - time.monotonic()
    if left <= 0:
        raise BadPage(f"it took longer than {LONGEST:.0f} s")
    return left


def unpacked(chunks: Iterable[bytes], coding: str) -> tuple[bytes, bool]:
    """The first MOST_BYTES of a body, and whether there was more. Never more is unpacked.

    There was more where a compression does not end, or begins again. Raises BadPage for one that
    was not asked for, or is broken.
    """
    if coding not in PACKED | {"", "identity"}:
        raise BadPage(f"it is compressed by {coding[:40]}")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if coding in PACKED else None
    body, read = bytearray(), 0
    for number, chunk in enumerate(chunks, start=1):
        read += len(chunk)
        try:
            body += unpack.decompress(chunk, MOST_BYTES + 1 - len(body)) if unpack else chunk
        except zlib.error:
            raise BadPage("its compression is broken") from None
        is_more = len(body) > MOST_BYTES or read > MOST_BYTES or number == MOST_PIECES
        if is_more or (unpack and unpack.unused_data):
            return bytes(body[:MOST_BYTES]), True
    return bytes(body), bool(unpack and read and not unpack.eof)


def unreachable(url: str, problem: str) -> Denied:
    """The refusal of a page that its server, or its markup, keeps from being read."""
    return refuse(
        Code.DRIVER_UNAVAILABLE,
        f"the web reader could not read {url[:200]}: {problem[:200]}",
        "try again later, or read another address",
        rule="a page answers in time (spec: hands 13)",
        driver="web reader",
    )
