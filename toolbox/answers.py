"""What a call is answered with, whichever face it came through; every error has one shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from core.decision import Code, Deny, status_of
from core.params import wire_result


@wire_result
class ErrorBody(TypedDict):
    """The one shape of every error."""

    ok: Literal[False]
    error_code: Code
    tool_name: str
    mode: Literal["", "chat_safe", "coding"]
    message: str
    next_action: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and headers of an answer."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


INTERNAL = Deny(
    Code.INTERNAL,
    "something broke on our side before this call could be answered",
    "repeat it with the same Idempotency-Key: it is never done twice; without a key check first "
    "whether it was done; if this stays, tell the people who run this installation",
)
"""What every face says of our own faults. It never claims that nothing was done: of a database
that fails while it commits, no one can say whether it did."""

DATABASE_UNAVAILABLE = Deny(
    Code.DATABASE_UNAVAILABLE,
    "the database was interrupted during this call: it may have been carried out, or not at all",
    "repeat it with the same Idempotency-Key: it is never done twice; without a key check first "
    "whether it was done",
    "an interrupted call never says that nothing was done (spec: wire 41)",
    {"retry_after": 1},
)
"""What every face says of a connection that broke in the middle of a call."""

SERVER_STOPPING = Deny(
    Code.SERVER_STOPPING,
    "the server was stopped during this call: it may have been carried out, or not at all",
    DATABASE_UNAVAILABLE.next_action,
    DATABASE_UNAVAILABLE.rule,
    {"retry_after": 5},
)
"""What a server says to the calls that are still under way when it ends."""

NOTHING_THERE = Deny(
    Code.NOT_FOUND,
    "there is nothing at this address",
    "see /api/docs/ for the addresses there are",
)


def answer_denial(deny: Deny, *, tool: str = "", mode: str = "") -> Answer:
    """The answer to a refused call."""
    return Answer(status_of(deny.code), envelope(deny, tool=tool, mode=mode), _headers(deny))


def envelope(deny: Deny, *, tool: str = "", mode: str = "") -> dict[str, Any]:
    """The one shape of every error."""
    return {
        "ok": False,
        "error_code": deny.code.value,
        "tool_name": tool,
        "mode": str(mode),
        "message": deny.message,
        "next_action": deny.next_action,
        "details": dict(deny.details),
    }


def _headers(deny: Deny) -> dict[str, str]:
    match deny.code:
        case Code.RATE_LIMITED | Code.DATABASE_UNAVAILABLE | Code.SERVER_STOPPING:
            return {"Retry-After": str(deny.details["retry_after"])}
        case Code.UNAUTHENTICATED:
            return {"WWW-Authenticate": "Bearer"}
        case Code.METHOD_NOT_ALLOWED:
            return {"Allow": ", ".join(deny.details["allow"])}
        case _:
            return {}
