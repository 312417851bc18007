"""Where people's sessions are kept: Django's own table, asked for keys that Django makes alone."""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import VALID_KEY_CHARS

LENGTH = 32
"""Characters of a key, as Django makes it."""


class SessionStore(db.SessionStore):
    """Django's own, which takes no other key from a cookie.

    A cookie in quotes may spell any character, also NUL, which no database looks up. Spec: wire 17.
    """

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and len(key) == LENGTH and set(key) <= set(VALID_KEY_CHARS)
