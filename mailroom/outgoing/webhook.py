"""One notice to a webhook: signed as Standard Webhooks say, to public addresses only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from pydantic_core import to_json
from standardwebhooks import Webhook

from core.addresses import is_public
from mailroom.models import OutgoingNotice
from orgchart.compiling import current_policy

TIMEOUT = httpx.Timeout(10.0, connect=5.0)
LONGEST = 12.0
"""Upper limit of one attempt, in seconds."""


class NoticeRefused(Exception):
    """The address may not be called, or the receiver did not accept the notice."""


def secret_of(organisation: str) -> str:
    """The organisation's webhook secret, as receivers are given it (`whsec_…`).

    Derived from the installation's own secret, so that nothing has to be stored.
    """
    key = hmac.digest(
        settings.SECRET_KEY.encode(), f"webhook:{organisation}".encode(), hashlib.sha256
    )
    return "whsec_" + base64.b64encode(key).decode()


def send(row: OutgoingNotice, *, now: datetime) -> None:
    """Post the notice. Raises NoticeRefused, or httpx's own errors."""
    policy = current_policy(row.organisation_id)
    body = to_json(row.payload)
    url, extensions, host = resolve_once(
        row.target, internal=bool(policy.settings["allow_internal_addresses"])
    )
    signer = Webhook(secret_of(policy.organisation))
    at = datetime.now(UTC)
    headers = {
        "Host": host,
        "Content-Type": "application/json",
        "User-Agent": "NEXUS",
        "webhook-id": str(row.event_id),
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signer.sign(str(row.event_id), at, body.decode()),
    }
    with (
        close_after(LONGEST) as trace,
        httpx.Client(
            timeout=TIMEOUT, follow_redirects=False, trust_env=False, verify=trusted()
        ) as client,
    ):
        request = client.build_request(
            "POST", url, content=body, headers=headers, extensions={**extensions, "trace": trace}
        )
        response = client.send(request, stream=True)
        try:
            if not response.is_success:
                raise NoticeRefused(f"the receiver answered {response.status_code}")
        finally:
            response.close()


@cache
def trusted() -> ssl.SSLContext:
    """The authorities that receivers' certificates are checked by, read once."""
    return httpx.create_ssl_context(trust_env=False)


@contextmanager
def close_after(seconds: float) -> Iterator[Callable[[str, Mapping[str, Any]], None]]:
    """Close the connection of the yielded trace when the time is over.

    The client's own timeouts restart with every byte.
    """
    sockets: list[socket.socket] = []

    def trace(event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            sockets.append(info["return_value"].get_extra_info("socket"))

    def cut() -> None:
        for each in sockets[-1:]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield trace
    finally:
        timer.cancel()


def resolve_once(target: str, *, internal: bool) -> tuple[str, dict[str, str], str]:
    """Resolve the address once, so that the name cannot change between check and call.

    Raises NoticeRefused for other schemes and, unless `internal` is allowed, for a name with an
    address that is not public.
    """
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoticeRefused("not an http or https address")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(entry[4][0]) for entry in found]
    if not internal and not all(is_public(address) for address in addresses):
        raise NoticeRefused(f"{parts.hostname} is not a public address")
    number = f"[{addresses[0]}]" if addresses[0].version == 6 else str(addresses[0])
    path = parts.path or "/"
    url = f"{parts.scheme}://{number}:{port}{path}" + (f"?{parts.query}" if parts.query else "")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    host = name if parts.port is None else f"{name}:{parts.port}"
    return url, {"sni_hostname": parts.hostname}, host
