"""How a lower room tells that a person intervened: governance keeps the one table of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.actors import Actor, Person
from core.hooks import Hook
from core.permissions import Deed


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonIntervened:
    """What a person did to something that runs; the fields that every intervention has."""

    person: Person
    deed: Deed
    subject: str
    trigger_condition: str
    action_taken: str
    reason: str
    timestamp: datetime


intervened = Hook[[PersonIntervened], None]("keep what a person did, in the present transaction")


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
            PersonIntervened(
                person=caller,
                deed=deed,
                subject=subject,
                trigger_condition=trigger_condition,
                action_taken=action_taken,
                reason=reason,
                timestamp=now,
            )
        )
