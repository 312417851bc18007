"""What is weaker here than the full wall: a sandbox, and an own user for each agent."""

from __future__ import annotations

import os
import time
from threading import Lock

from workspace.sandbox import driver

HOLDS = 60.0
"""Seconds that an answer holds."""
SHARED_USER = "agents share one operating-system user, because the server does not run as root"

_asking = Lock()
_answer: list[str] = []
_until = 0.0


def find_weaknesses() -> list[str]:
    """What is weaker than the full wall, in words; [] for the full wall (Spec: files 8)."""
    global _answer, _until  # noqa: PLW0603  one answer for each process
    with _asking:
        if time.monotonic() > _until:
            found = driver.strongest()
            _answer = [f"no sandbox holds ({found}): tools that run programs are off"] * isinstance(
                found, str
            )
            _answer += [SHARED_USER] * (os.geteuid() != 0)
            _until = time.monotonic() + HOLDS
        return list(_answer)


def status() -> str:
    """The same as one line, for /readyz."""
    found = find_weaknesses()
    return f"WEAKER than the full wall: {'; '.join(found)}" if found else "full wall"
