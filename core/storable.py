"""Characters that no text column can hold, and marks without end on one character; pure."""

import re
import unicodedata

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, and half of a surrogate pair."""
REPLACEMENT = "\ufffd"
MOST_MARKS = 30
"""Combining marks in a row, as in a stream-safe text (Unicode annex 15).

To sort more of them takes Python and PostgreSQL a time that grows with the square of their number,
and on a page they cover the lines around them.
"""
_TURN_INTO_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"  # in a normal form
_MARKS = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x20000)))) + _TURN_INTO_MARKS
MARKS = re.compile(f"[{_MARKS}]+")


def text_problem(text: str) -> str:
    """Why a text from outside is not taken, or ''."""
    if UNSTORABLE.search(text):
        return "holds NUL or half a surrogate pair"
    if has_stacked_marks(text):
        return f"holds more than {MOST_MARKS} combining marks in a row"
    return ""


def has_stacked_marks(text: str) -> bool:
    """Whether a text holds more marks in a row than `MOST_MARKS`.

    So many in a row have one at every such distance: most texts are decided by a part of them.
    """
    if text.isascii() or not MARKS.search(text[MOST_MARKS :: MOST_MARKS + 1]):
        return False
    return any(len(row) > MOST_MARKS for row in MARKS.findall(text))
