"""Characters that turn the direction of text: people see their numbers. Pure."""

from __future__ import annotations

import re

CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Unicode's bidirectional controls: with them a text reads otherwise than it is."""


def show_in_text(text: str) -> str:
    """A text with its controls as numbers."""
    return CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
