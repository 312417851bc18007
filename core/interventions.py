"""How a lower room tells that a person intervened: governance keeps the one table of it."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict, Unpack

from core.actors import Actor, Person
from core.hooks import Hook
from core.permissions import Deed


class InterventionFacts(TypedDict):
    """What a person did, to what, in which situation, and why."""

    deed: Deed
    subject: str
    trigger_condition: str
    action_taken: str
    reason: str
    now: datetime


intervened = Hook[[Person, InterventionFacts], object](
    "keep what a person did, in the present transaction"
)


def record_intervention(caller: Actor, **facts: Unpack[InterventionFacts]) -> None:
    """Keep the intervention if the caller is a person; what agents do is their own work."""
    if isinstance(caller, Person):
        intervened(caller, facts)
