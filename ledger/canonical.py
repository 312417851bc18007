"""The one canonical form of an event, and the digest over that form; pure."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from core.events import BIGGEST, Event, UnrecordableEvent, text
from core.storable import REPLACEMENT, UNSTORABLE

JSON = Any  # a JSON value; Python 3.11 has no recursive alias that mypy and pydantic share

DOMAIN = b"nexus.ledger.event.v1\x00"
LONG = 4000  # characters of a reason
DEEPEST = 64  # levels of details
EXACT = 2**53  # whole floats below this are the same number in Python, JSON and jsonb

FIELDS = (
    "id",
    "action",
    "actor",
    "at",
    "organisation_id",
    "decision",
    "code",
    "reason",
    "tool",
    "subject",
    "policy_version",
    "args_digest",
    "request_id",
    "session_id",
    "for_agent_id",
    "kind",
    "details",
)


def fields(event: Event) -> dict[str, JSON]:
    """Return the event as plain JSON values: what is stored, hashed and exported.

    Text that no database can hold (NUL, lone surrogates) becomes U+FFFD, and text that is too long
    is cut: a hostile string must not be able to keep its own refusal out of the ledger. Raises
    UnrecordableEvent for what is wrong in our own code: a naive time, NaN, a key that is no text.
    """
    return {
        "id": str(event.id),
        "action": text(event.action),
        "actor": text(event.actor),
        "at": stamp(event.at),
        "organisation_id": whole(event.organisation_id),
        "decision": text(event.decision),
        "code": text(event.code),
        "reason": text(event.reason, LONG),
        "tool": text(event.tool),
        "subject": text(event.subject),
        "policy_version": whole(event.policy_version),
        "args_digest": text(event.args_digest),
        "request_id": text(event.request_id),
        "session_id": text(event.session_id),
        "for_agent_id": whole(event.for_agent_id),
        "kind": text(event.kind),
        "details": normal(event.details) if event.details else {},
    }


def digest(event: Event) -> bytes:
    """Return the SHA-256 over all fields of the event."""
    return digest_fields(fields(event))


def digest_fields(values: Mapping[str, JSON]) -> bytes:
    """Return the digest of an event given as `fields()` gives it, a stored row or an exported line.

    The domain keeps it apart from every other hash here; names and quotes frame each field, so no
    text can move from one field into the next unnoticed.
    """
    return sha256(DOMAIN + canonical(values).encode()).digest()


canonical = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def stamp(at: datetime | None) -> str:
    """Return an aware time as ISO 8601 in UTC with microseconds.

    Raises UnrecordableEvent for a time outside the calendar, which is None where it was stored.
    """
    if at is None:
        raise UnrecordableEvent("its time is outside the calendar")
    if at.tzinfo is None:
        raise UnrecordableEvent("the time of an event needs a time zone")
    try:
        utc = at if at.tzinfo is UTC else at.astimezone(UTC)
        return utc.isoformat(timespec="microseconds")
    except OverflowError:
        raise UnrecordableEvent(f"{at!r} is outside the calendar") from None


def whole(value: int | None) -> int | None:
    """Return a number that fits a bigint, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -BIGGEST <= value <= BIGGEST:
        raise UnrecordableEvent(f"{value!r:.40} is not a 64-bit number")
    return int(value)


def normal(value: JSON, depth: int = 0) -> JSON:
    """Return a JSON value in the one form that survives a trip through jsonb unchanged."""
    if depth > DEEPEST:
        raise UnrecordableEvent(f"details are nested deeper than {DEEPEST}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return UNSTORABLE.sub(REPLACEMENT, str(value))
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {_key(key): normal(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [normal(item, depth + 1) for item in value]
    raise UnrecordableEvent(f"{type(value).__name__} is not a JSON value")


def parse(stored: str) -> JSON:
    """Read details from their stored text; raises UnrecordableEvent for what no Event holds.

    As `normal` of what the text says. Numbers are brought to their form while they are read; only
    text that may nest deep, or escapes characters, is looked through again.
    """
    try:
        value, end = DECODER.raw_decode(stored)
    except (ValueError, RecursionError) as error:
        raise UnrecordableEvent("these details were never written by the ledger") from error
    if end != len(stored):
        raise UnrecordableEvent("these details were never written by the ledger")
    levels = stored.count("{") + stored.count("[")
    return normal(value) if levels > DEEPEST or "\\u" in stored else value


def _number(value: float) -> int | float:
    if not abs(value) < EXACT:  # NaN compares as false
        raise UnrecordableEvent(f"{value!r} has no exact form in JSON")
    return int(value) if value.is_integer() else value


def _exact(digits: str) -> float:
    """Parse a number, refusing digits beyond what a float holds: they would escape the digest."""
    value = float(digits)
    if Decimal(digits) != Decimal(repr(value)):
        raise UnrecordableEvent(f"{digits:.40} is no float")
    return value


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise UnrecordableEvent(f"a key of details is {type(key).__name__}, not text")
    return UNSTORABLE.sub(REPLACEMENT, str(key))


def _read_float(digits: str) -> int | float:
    return _number(_exact(digits))


def _read_whole(digits: str) -> int | None:
    return whole(int(digits))


DECODER = json.JSONDecoder(parse_float=_read_float, parse_int=_read_whole)
