"""The form of an agent's key, and its removal from what is kept; pure."""

from __future__ import annotations

import re

KEY_PREFIX = "nxs_"
PREFIX_LENGTH = 12
"""How much of a key is kept in the clear, so that people can tell keys apart."""
KEYS = re.compile(
    rf"({KEY_PREFIX}[\w-]{{{PREFIX_LENGTH - len(KEY_PREFIX)}}})[\w-]+",
    re.ASCII,
)


def without_keys(text: str) -> str:
    """The text with no more of an agent's key than its beginning (Spec: ledger 17)."""
    return KEYS.sub(r"\1…", text) if KEY_PREFIX in text else text
