"""Texts that show nothing: empty, or spaces and invisible characters only; pure."""

from __future__ import annotations

import unicodedata

FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Hangul fillers and the Braille pattern without dots: letters and a symbol that show nothing."""


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing of it: a mark alone belongs to a character that is missing."""
    return not any(unicodedata.category(char)[0] in "LNPS" and char not in FILLERS for char in text)
