"""The words of every decision: reason codes, Allow, Deny, and the exception of a Deny; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """Why a call was refused. These are API: stored, tested, shown (Spec: wire 16)."""

    INVALID_PARAMS = "INVALID_PARAMS"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    TOOL_NOT_BOUND = "TOOL_NOT_BOUND"
    TOOL_DENIED = "TOOL_DENIED"
    MODE_DENIED = "MODE_DENIED"
    CONTACT_DENIED = "CONTACT_DENIED"
    MAIL_TYPE_DENIED = "MAIL_TYPE_DENIED"
    CONTRACT_REQUIRED = "CONTRACT_REQUIRED"
    RECIPIENT_UNKNOWN = "RECIPIENT_UNKNOWN"
    RECIPIENT_INACTIVE = "RECIPIENT_INACTIVE"
    LEVEL_DENIED = "LEVEL_DENIED"
    AGENT_INACTIVE = "AGENT_INACTIVE"
    AGENT_PAUSED = "AGENT_PAUSED"
    SCOPE_DENIED = "SCOPE_DENIED"
    BRANCH_DENIED = "BRANCH_DENIED"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    AUTHORISATION_REQUIRED = "AUTHORISATION_REQUIRED"
    FORCE_ASSIGN_DENIED = "FORCE_ASSIGN_DENIED"
    ROLE_MISMATCH = "ROLE_MISMATCH"
    STAGE_DENIED = "STAGE_DENIED"
    INPUT_DENIED = "INPUT_DENIED"
    NOT_YOURS = "NOT_YOURS"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    INVALID_TRANSITION = "INVALID_TRANSITION"
    TASK_BLOCKED = "TASK_BLOCKED"
    DELEGATION_CIRCLE = "DELEGATION_CIRCLE"
    IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
    TOO_LARGE = "TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    ISOLATION_UNAVAILABLE = "ISOLATION_UNAVAILABLE"
    STORAGE_FULL = "STORAGE_FULL"
    DATABASE_UNAVAILABLE = "DATABASE_UNAVAILABLE"
    SERVER_STOPPING = "SERVER_STOPPING"
    DRIVER_UNAVAILABLE = "DRIVER_UNAVAILABLE"
    INTERNAL = "INTERNAL"


STATUS: Mapping[Code, int] = {
    Code.INVALID_PARAMS: 400,
    Code.UNAUTHENTICATED: 401,
    Code.UNKNOWN_TOOL: 404,
    Code.NOT_FOUND: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.VERSION_MISMATCH: 409,
    Code.INVALID_TRANSITION: 409,
    Code.TASK_BLOCKED: 409,
    Code.DELEGATION_CIRCLE: 409,
    Code.IDEMPOTENCY_MISMATCH: 409,
    Code.TOO_LARGE: 413,
    Code.RATE_LIMITED: 429,
    Code.QUOTA_EXCEEDED: 429,
    Code.INTERNAL: 500,
    Code.ISOLATION_UNAVAILABLE: 503,
    Code.DRIVER_UNAVAILABLE: 503,
    Code.DATABASE_UNAVAILABLE: 503,
    Code.SERVER_STOPPING: 503,
    Code.STORAGE_FULL: 507,
}
"""HTTP status of a code; every code not listed is a refusal by rule: 403."""


def status_of(code: Code) -> int:
    """The HTTP status a code is answered with."""
    return STATUS.get(code, 403)


@dataclass(frozen=True, slots=True)
class Allow:
    """A yes, with the rule that gave it."""

    rule: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """A no: its code, the sentence that names the rule, and a step the caller can really take."""

    code: Code
    message: str
    next_action: str = ""
    rule: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The message and the next step as sentences, for people. Handles keep their case."""
        step = self.next_action[:1].upper() + self.next_action[1:]
        return " ".join(f"{part.rstrip('.')}." for part in (self.message, step) if part)


Decision = Allow | Deny


OnRefused = Callable[[Any], None]
"""Writes a refusal's event together with rows of its own, in one statement."""


class Denied(Exception):
    """A refusal on its way to the door, which rolls back, records it and answers the envelope.

    `on_refused`, where given, records the event in place of the door, together with rows of its own
    (a rejected mail, a system mail), in the refusal's transaction.
    """

    def __init__(self, deny: Deny, on_refused: OnRefused | None = None) -> None:
        super().__init__(deny.message)
        self.deny = deny
        self.on_refused = on_refused


NAMED = 30
"""Names that a sentence gives; it says how many more there are."""


def listed(names: Sequence[str], *, most: int = NAMED) -> str:
    """These names in a sentence: the first of them, and how many more; '' where there is none."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def deny(
    code: Code, message: str, next_action: str = "", *, rule: str = "", **details: Any
) -> Deny:
    """Shorthand for a Deny with details as keywords."""
    return Deny(code, message, next_action, rule, details)


def refuse(
    code: Code, message: str, next_action: str = "", *, rule: str = "", **details: Any
) -> Denied:
    """The exception for a refusal, with details as keywords."""
    return Denied(deny(code, message, next_action, rule=rule, **details))


def stale(
    what: str, next_action: str, *, expected: int | None = None, current: int | None = None
) -> Deny:
    """The refusal of a change that was decided on a version which is no longer the present one.

    The versions are left out where the row moved between its reading and its saving. Spec: wire 38.
    """
    named = {"expected": expected, "current": current} if expected is not None else {}
    versions = f": expected version {expected}, current {current}" if named else ""
    return deny(
        Code.VERSION_MISMATCH,
        f"{what} changed after you read it{versions}",
        next_action,
        rule="a change names the version it was decided on (spec: wire 38)",
        **named,
    )


def require_version(what: str, next_action: str, *, expected: int | None, current: int) -> None:
    """Raise Denied VERSION_MISMATCH where the caller expected another version than the current."""
    if expected not in (None, current):
        raise Denied(stale(what, next_action, expected=expected, current=current))


def require(decision: Decision) -> Allow:
    """Return the Allow, or raise Denied with the Deny."""
    if isinstance(decision, Deny):
        raise Denied(decision)
    return decision
