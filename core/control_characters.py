"""Characters that turn text around or steer a terminal: people see their numbers. Pure."""

from __future__ import annotations

import re

CODES = (
    *(*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)),  # of terminals
    *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),  # bidirectional
    *(0x2028, 0x2029, 0xFEFF),  # breaks and marks that only some programs know
)
"""With these a text reads otherwise than it is, or a `cat` of an export does what it says."""

CONTROLS = re.compile(f"[{''.join(map(chr, CODES))}]")


def show_in_text(text: str) -> str:
    """A text with its controls as numbers."""
    return CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
