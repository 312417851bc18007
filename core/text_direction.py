"""Characters that turn text around or steer a terminal: people see their numbers. Pure."""

from __future__ import annotations

import re

CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Unicode's bidirectional controls, with which a text reads otherwise than it is; line breaks that
only some programs know; and the codes of terminals, which a `cat` of an export would obey."""


def show_in_text(text: str) -> str:
    """A text with its controls as numbers."""
    return CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
