"""What an event of the ledger says: a value that services make and the ledger keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack
from uuid import UUID, uuid4

from core.actions import Action
from core.hooks import Hook
from core.storable import REPLACEMENT, UNSTORABLE

if TYPE_CHECKING:
    from core.actors import Actor

SHORT = 255  # characters of a name, a code, an id
BIGGEST = 2**63 - 1


class UnrecordableEvent(ValueError):
    """The event has no canonical form, so neither it nor its effect may happen."""


class EventOutcome(StrEnum):
    """How a gate ended."""

    ALLOW = "allow"
    DENY = "deny"


class DenialFields(TypedDict):
    """What makes an event a refusal."""

    decision: EventOutcome
    code: str
    reason: str
    details: Mapping[str, Any]


class EventFields(TypedDict, total=False):
    """What an event says besides who did what and when."""

    decision: EventOutcome
    code: str
    reason: str
    tool: str
    subject: str
    policy_version: int | None
    args_digest: str
    request_id: str
    session_id: str
    for_agent_id: int | None
    kind: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened or was refused.

    `action` is dotted and in the past tense ("mail.delivered"); `actor` is "agent:…", "human:…" or
    "system:…". `for_agent_id` and `kind` put it on that agent's event stream.
    """

    action: Action
    actor: str
    at: datetime
    organisation_id: int | None = None
    decision: EventOutcome = EventOutcome.ALLOW
    code: str = ""
    reason: str = ""
    tool: str = ""
    subject: str = ""
    policy_version: int | None = None
    args_digest: str = ""
    request_id: str = ""
    session_id: str = ""
    for_agent_id: int | None = None
    kind: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid4)

    @classmethod
    def by(
        cls, actor: Actor, action: Action, *, at: datetime, **fields: Unpack[EventFields]
    ) -> Self:
        """The event of what this actor did, for a statement that carries it."""
        said: EventFields = {**actor.origin, **fields}
        return cls(
            action=action,
            actor=actor.actor,
            at=at,
            organisation_id=actor.organisation_id,
            **said,
        )


record_event = Hook[[Event], int]("write an event that has no effect, as a statement by itself")
"""Lets `core` record what a person was refused; the ledger joins it."""


def text(value: str, limit: int = SHORT) -> str:
    """Return the text as the database can hold it, at most `limit` characters."""
    if type(value) is not str:
        if not isinstance(value, str):
            raise UnrecordableEvent(f"expected text, got {type(value).__name__}")
        value = str(value)
    if not value:
        return value
    if len(value) > limit:
        value = value[: limit - 1] + "…"
    if value.isascii() and "\x00" not in value:
        return value
    return UNSTORABLE.sub(REPLACEMENT, value)
