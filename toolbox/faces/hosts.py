"""Which requests are for another host, or come from another site's page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

Message = dict[str, Any]


def status_of_foreign(scope: Message) -> int:
    """The status for a request to a host, or from a page, that is not ours (DNS rebinding); else 0.

    By the rules of `ALLOWED_HOSTS`, subdomains included, which the SDK's own check does not know.
    """
    host = split_domain_port(header_of(scope, "host") or "")[0]
    if not validate_host(host, settings.ALLOWED_HOSTS):
        return 421
    origin = header_of(scope, "origin") or ""
    scheme, _, page = origin.partition("://")
    ours = scheme in {"http", "https"} and validate_host(
        split_domain_port(page)[0], settings.ALLOWED_HOSTS
    )
    return 403 if origin and not ours else 0


def header_of(scope: Message, name: str) -> str | None:
    """The first header of that name (in lower case), or None."""
    wanted = name.encode()
    found = (value.decode("latin-1") for key, value in scope["headers"] if key == wanted)
    return next(found, None)
