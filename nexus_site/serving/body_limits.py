"""Who may send more than a stranger: a cheap look at the key or the session of a request."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import parse_cookie

from core.database import give_back_connection
from nexus_site.console.sessions import SessionStore
from toolbox.authentication import is_valid_key


def is_known(scope: dict[str, Any]) -> bool:
    """Whether a request carries an agent's valid key, or the session of a signed-in person.

    It only decides how much is read: the view authenticates the request itself.
    """
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    try:
        if b"authorization" in headers:
            return is_valid_key(headers[b"authorization"])
        key = parse_cookie(headers.get(b"cookie", "")).get(settings.SESSION_COOKIE_NAME)
        return bool(key) and _is_signed_in(str(key))
    finally:
        give_back_connection()


def _is_signed_in(key: str) -> bool:
    return SESSION_KEY in SessionStore(key)
