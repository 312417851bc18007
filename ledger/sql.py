"""The one INSERT of the ledger, as text that a hot service makes a part of its own statement."""

from functools import cache
from typing import Any

from core.events import Event
from core.machines import Cte
from ledger.canonical import canonical, digest_fields, fields

TYPES = {
    "id": "uuid",
    "action": "text",
    "actor": "text",
    "at": "timestamptz",
    "organisation_id": "bigint",
    "decision": "text",
    "code": "text",
    "reason": "text",
    "tool": "text",
    "subject": "text",
    "policy_version": "bigint",
    "args_digest": "text",
    "request_id": "text",
    "session_id": "text",
    "for_agent_id": "bigint",
    "kind": "text",
    "details": "jsonb",
    "digest": "bytea",
}


@cache
def insert(prefix: str = "ev", source: str = "") -> str:
    """Return the INSERT with parameters named `<prefix>_<column>`.

    It ends before RETURNING, so it is used alone or as a CTE:
    `WITH ev AS ({INSERT} RETURNING seq) INSERT INTO …`. Two events in one statement take two
    prefixes. With a `source` (a CTE of the same statement that yields one row or none) the event is
    written if that row is there, so that an effect that did not happen leaves no event.
    """
    values = ", ".join(f"%({prefix}_{name})s::{kind}" for name, kind in TYPES.items())
    rows = f"SELECT {values} FROM {source}" if source else f"VALUES ({values})"
    return f"INSERT INTO ledger_event ({', '.join(TYPES)}) {rows}"


INSERT = insert()


def params(event: Event, prefix: str = "ev") -> dict[str, Any]:
    """Return the named parameters of `insert(prefix)` for this event, its digest included.

    Raises UnrecordableEvent.
    """
    values = fields(event)
    sealed = digest_fields(values)
    values["details"] = canonical(values["details"]) if values["details"] else "{}"
    named: dict[str, Any] = dict(zip(_names(prefix), values.values(), strict=False))
    named[f"{prefix}_digest"] = sealed
    return named


def event_cte(event: Event, prefix: str = "ev") -> Cte:
    """The event as a statement of a swap: it is written if the swap found its row."""
    return Cte(prefix, insert(prefix, "swapped"), params(event, prefix))


@cache
def _names(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for name in TYPES)
