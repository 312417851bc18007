"""Sessions of people, in Django's own table; only keys in Django's own form are looked up."""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import VALID_KEY_CHARS

LENGTH = 32
"""Characters of a key, as Django makes it."""


class SessionStore(db.SessionStore):
    """Django's session store; it ignores any cookie that Django did not make.

    A cookie in quotes may spell any character, also NUL, which no database looks up. Spec: wire 17.
    """

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and len(key) == LENGTH and set(key) <= set(VALID_KEY_CHARS)
