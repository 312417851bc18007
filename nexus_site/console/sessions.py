"""Sessions of people, in Django's own table; only keys in Django's own form are looked up."""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import VALID_KEY_CHARS, UpdateError
from django.db import DatabaseError

LENGTH = 32
"""Characters of a key, as Django makes it."""


class SessionStore(db.SessionStore):
    """Django's session store; it ignores any cookie that Django did not make, and takes no failure
    of the database for a session that was deleted.

    A cookie in quotes may spell any character, also NUL, which no database looks up. Spec: wire 17.
    """

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002  Django's own signature
        """Save the session. Raises UpdateError where it was deleted.

        Django raises that for each failure, and its page says that a form was not understood and
        is to be sent once more: what it did may be committed by then. Spec: wire 41.
        """
        try:
            super().save(must_create=must_create)
        except UpdateError as gone:
            failure = gone.__context__
            if isinstance(failure, DatabaseError) and failure.__cause__:  # the database's own word
                raise failure from failure.__cause__
            raise

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and len(key) == LENGTH and set(key) <= set(VALID_KEY_CHARS)
