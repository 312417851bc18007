"""Ids: numbers of rows, and those that carry their time, `MAIL-{timestamp}-{random_4}`."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


MOST_DIGITS = 18
"""Digits of the largest number that is taken for a row's id: every such number is a bigint."""


def row_id(text: str) -> int | None:
    """The number of a row that a text names; None for text that names none: no plain number."""
    plain = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if plain else None


def timed_id(prefix: str, now: datetime) -> str:
    """An id such as `MAIL-20260219093000123456-k3x9`: sortable by time, not to be guessed.

    Spec: mail 4.
    """
    stamp = now.astimezone(UTC).strftime("%Y%m%d%H%M%S%f")
    number = secrets.randbelow(len(LETTERS) ** 4)
    tail = ""
    for _ in range(4):
        number, rest = divmod(number, len(LETTERS))
        tail += LETTERS[rest]
    return f"{prefix}-{stamp}-{tail}"
