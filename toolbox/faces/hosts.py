"""Which requests are for another host, or come from another site's page."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

Message = dict[str, Any]
SCHEMES = frozenset({"http", "https"})


def status_of_foreign(scope: Message) -> int:
    """The status for a request to a host, or from a page, that is not ours (DNS rebinding); else 0.

    By the rules of `ALLOWED_HOSTS`, subdomains included, which the SDK's own check does not know.
    """
    hosts = tuple(settings.ALLOWED_HOSTS)
    if not _is_allowed(header_of(scope, "host") or "", hosts):
        return 421
    origin = header_of(scope, "origin")
    if not origin:
        return 0
    scheme, _, page = origin.partition("://")
    return 0 if scheme in SCHEMES and _is_allowed(page, hosts) else 403


@lru_cache(maxsize=64)
def _is_allowed(address: str, hosts: tuple[str, ...]) -> bool:
    """Whether the host of an address is one of these; most requests name the same one."""
    return validate_host(split_domain_port(address)[0], hosts)


def header_of(scope: Message, name: str) -> str | None:
    """The first header of that name (in lower case), or None."""
    wanted = name.encode()
    for key, value in scope["headers"]:
        if key == wanted:
            return str(value, "latin-1")
    return None
