"""What is weaker here than the full wall: a sandbox, and an own user for each agent."""

from __future__ import annotations

import os

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from core.kept import Kept
from core.labels import Text
from workspace.sandbox import driver

KEPT_SECONDS = 60.0
SHARED_USER = _("agents share one operating-system user, because the server does not run as root")


def find_weaknesses() -> list[Text]:
    """What is weaker than the full wall, in words; [] for the full wall (Spec: files 8)."""
    return list(found_last())


def _find() -> list[Text]:
    found = driver.strongest()
    words: list[Text] = []
    if isinstance(found, str):
        said = _("no sandbox holds ({problem}): tools that run programs are off")
        words.append(format_lazy(said, problem=found))
    if os.geteuid() != 0:
        words.append(SHARED_USER)
    return words


found_last = Kept(_find, seconds=KEPT_SECONDS)
"""Walls are tried at most once a minute."""


def status() -> str:
    """The same as one line of English, for /readyz."""
    with override(None):
        found = [str(each) for each in find_weaknesses()]
    return f"WEAKER than the full wall: {'; '.join(found)}" if found else "full wall"
