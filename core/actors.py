"""Who acts: an agent's call, a person, or the system itself; all three leave the same trace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from core.actions import Action
from core.decision import Deny
from core.events import Event, EventOutcome


class Actor(Protocol):
    """What services need of whoever acts."""

    @property
    def actor(self) -> str:
        """`agent:<handle>`, `human:<username>` or `system:<what>`: what the ledger names."""
        ...

    @property
    def organisation_id(self) -> int:
        """The organisation acted on."""
        ...

    def event(self, action: Action, *, at: datetime, subject: str = "", **fields: Any) -> Event:
        """An event of this actor, ready for the ledger."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A human in the admin or on the command line, acting on one organisation.

    `offices` are the names of the Django groups that give rights (decisions.md, human roles).
    """

    username: str
    organisation_id: int
    offices: frozenset[str] = frozenset()
    policy_version: int | None = None
    request_id: str = ""

    @property
    def actor(self) -> str:
        """What the ledger names."""
        return f"human:{self.username}"

    def event(self, action: Action, *, at: datetime, subject: str = "", **fields: Any) -> Event:
        """An event of this actor, ready for the ledger."""
        return Event(
            action=action,
            actor=self.actor,
            at=at,
            organisation_id=self.organisation_id,
            subject=subject,
            policy_version=self.policy_version,
            request_id=self.request_id,
            **fields,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The system's own hand: sweeps, start-up, notices."""

    name: str
    organisation_id: int

    @property
    def actor(self) -> str:
        """What the ledger names."""
        return f"system:{self.name}"

    def event(self, action: Action, *, at: datetime, subject: str = "", **fields: Any) -> Event:
        """An event of this actor, ready for the ledger."""
        return Event(
            action=action,
            actor=self.actor,
            at=at,
            organisation_id=self.organisation_id,
            subject=subject,
            **fields,
        )


def denial(deny: Deny, **details: Any) -> dict[str, Any]:
    """The fields that make an event this refusal, whoever was refused."""
    return {
        "decision": EventOutcome.DENY,
        "code": deny.code.value,
        "reason": deny.message,
        "details": {"rule": deny.rule, "next_action": deny.next_action, **details},
    }
