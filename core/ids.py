"""Ids that carry their time: `MAIL-{timestamp}-{random_4}` (Spec: mail 4)."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def timed_id(prefix: str, now: datetime) -> str:
    """An id such as `MAIL-20260219093000123456-k3x9`: sortable by time, not to be guessed."""
    stamp = now.astimezone(UTC).strftime("%Y%m%d%H%M%S%f")
    number = secrets.randbelow(len(LETTERS) ** 4)
    tail = ""
    for _ in range(4):
        number, rest = divmod(number, len(LETTERS))
        tail += LETTERS[rest]
    return f"{prefix}-{stamp}-{tail}"
