"""Ids: numbers of rows, and those that carry their time, `MAIL-{timestamp}-{random_4}`."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PAIRS = tuple(one + other for one in LETTERS for other in LETTERS)

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
    # strftime takes three times as long.
    said = now.astimezone(UTC).isoformat(timespec="microseconds")
    day, time = said[:4] + said[5:7] + said[8:10], said[11:13] + said[14:16] + said[17:19]
    stamp = day + time + said[20:26]
    first, second = divmod(secrets.randbelow(len(PAIRS) ** 2), len(PAIRS))
    return f"{prefix}-{stamp}-{PAIRS[first]}{PAIRS[second]}"
