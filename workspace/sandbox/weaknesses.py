"""What is weaker here than the full wall: a sandbox, and an own user for each agent."""

from __future__ import annotations

import os

from core.kept import Kept
from workspace.sandbox import driver

KEPT_SECONDS = 60.0
SHARED_USER = "agents share one operating-system user, because the server does not run as root"


def find_weaknesses() -> list[str]:
    """What is weaker than the full wall, in words; [] for the full wall (Spec: files 8)."""
    return list(found_last())


def _find() -> list[str]:
    found = driver.strongest()
    words = []
    if isinstance(found, str):
        words.append(f"no sandbox holds ({found}): tools that run programs are off")
    if os.geteuid() != 0:
        words.append(SHARED_USER)
    return words


found_last = Kept(_find, seconds=KEPT_SECONDS)
"""Walls are tried at most once a minute."""


def status() -> str:
    """The same as one line, for /readyz."""
    found = find_weaknesses()
    return f"WEAKER than the full wall: {'; '.join(found)}" if found else "full wall"
