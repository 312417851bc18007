"""What is answered where something on our side broke, whichever face the call came through."""

from __future__ import annotations

from core.database import is_broken, is_lost
from core.decision import Deny
from toolbox.answers import DATABASE_UNAVAILABLE, INTERNAL
from toolbox.space import STORAGE_FULL, is_disk_at_fault


def fault_of(problem: BaseException | None) -> Deny:
    """The refusal that says what broke, as far as the caller can do something about it."""
    if problem is not None and is_disk_at_fault(problem):
        return STORAGE_FULL
    return DATABASE_UNAVAILABLE if is_lost(problem) or is_broken(problem) else INTERNAL
