"""Who acts: an agent's call, a person, or the system; the ledger names all three alike; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from core.decision import Allow, Decision, Deny, require
from core.events import DenialFields, EventFields, EventOutcome, text
from core.key_form import without_keys

MOST_STEP = 1000
"""Characters of a next step that an event keeps: the answer may name everybody of a company."""


class Actor(Protocol):
    """What services need to know of their caller."""

    @property
    def actor(self) -> str:
        """`agent:<handle>`, `human:<username>` or `system:<what>`: what the ledger names."""
        ...

    @property
    def organisation_id(self) -> int:
        """The organisation acted on."""
        ...

    @property
    def origin(self) -> EventFields:
        """Where the act comes from: the fields that every event of this actor carries."""
        ...

    def require(self, decision: Decision) -> Allow:
        """Return the Allow of a decision on this act, or raise Denied with the Deny."""
        ...


class Unexplained:
    """An actor whose acts no explanation is asked of."""

    __slots__ = ()

    def require(self, decision: Decision) -> Allow:
        """Return the Allow of a decision on this act, or raise Denied with the Deny."""
        return require(decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A second person's yes to one change: to exactly the difference that was shown."""

    by: str
    allowed: tuple[str, ...]
    forbidden: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person(Unexplained):
    """A person in the admin or on the command line, acting on one organisation.

    `groups` are the names of the Django groups that give rights; a superuser has every right, and
    is in the Board.
    `is_member` says whether they belong to that organisation (Spec: people 35), `is_member_of_all`
    whether to every one, and so to the installation.
    `confirmation` is given by the service that confirms a proposed change, and by nothing else.
    `contract` is the org_change contract that the person names for a change (Spec: people 34).
    `is_asked_again`: a user of the pages, whose rights may end meanwhile (Spec: people 68).
    """

    username: str
    organisation_id: int
    groups: frozenset[str] = frozenset()
    is_superuser: bool = False
    is_member: bool = False
    is_member_of_all: bool = False
    policy_version: int | None = None
    request_id: str = ""
    at_shell: bool = False
    confirmation: Confirmation | None = None
    contract: str = ""
    is_asked_again: bool = False

    @property
    def actor(self) -> str:
        """What the ledger names."""
        return f"human:{self.username}"

    @property
    def origin(self) -> EventFields:
        """The fields that every event of this actor carries."""
        return {"policy_version": self.policy_version, "request_id": self.request_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Unexplained):
    """The product itself: sweeps, start-up, system mail."""

    name: str
    organisation_id: int

    @property
    def actor(self) -> str:
        """What the ledger names."""
        return f"system:{self.name}"

    @property
    def origin(self) -> EventFields:
        """The fields that every event of this actor carries: none."""
        return {}


def denial(deny: Deny, **details: Any) -> DenialFields:
    """The fields of an event that records this refusal."""
    return {
        "decision": EventOutcome.DENY,
        "code": deny.code.value,
        "reason": without_keys(deny.message),
        "details": {"rule": deny.rule, "next_action": text(deny.next_action, MOST_STEP), **details},
    }
