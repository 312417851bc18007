"""How a lower room tells that a person intervened: governance keeps the one table of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from core.actors import Actor, Person
from core.hooks import Hook
from core.permissions import Deed

intervened = Hook[..., Any]("keep what a person did, in the present transaction")
"""Called with `person` and the keywords of `record_intervention`."""


def record_intervention(
    caller: Actor,
    deed: Deed,
    *,
    subject: str,
    trigger_condition: str,
    action_taken: str,
    reason: str,
    now: datetime,
) -> None:
    """Keep the intervention if the caller is a person; what agents do is their own work."""
    if isinstance(caller, Person):
        intervened(
            person=caller,
            deed=deed,
            subject=subject,
            trigger_condition=trigger_condition,
            action_taken=action_taken,
            reason=reason,
            now=now,
        )
