"""An agent's event stream, read from the ledger: in commit order, from any place, nothing twice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import connection

from orgchart.decision import Code, refuse
from toolbox.caller import Caller

PAGE = 200
PLACE = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)

READ = """
SELECT xid, seq, kind, action, actor, tool, subject, code, reason, at, details,
       xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS settled
FROM ledger_event
WHERE for_agent_id = %(agent)s AND (xid, seq) > (%(xid)s, %(seq)s) AND kind <> ''
  AND (kind = 'tool_denied' OR actor <> %(self)s)
  AND EXISTS (SELECT 1 FROM orgchart_apikey k JOIN orgchart_agent a ON a.id = k.agent_id
              WHERE k.digest = %(key)s AND k.revoked_at IS NULL AND a.active)
ORDER BY for_agent_id, xid, seq LIMIT %(limit)s
"""
NAMES = ("kind", "action", "actor", "tool", "subject", "code", "reason", "at", "details")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the stream: the transaction that wrote an event, and the event's number."""

    xid: int
    seq: int

    def __str__(self) -> str:
        return f"{self.xid}-{self.seq}"


@dataclass(frozen=True, slots=True)
class Page:
    """Events with their places, and whether more exist that an older transaction holds back."""

    events: list[tuple[Place, dict[str, Any]]]
    unsettled: bool


def place_of(text: str) -> Place:
    """The place that a `Last-Event-ID` names. Raises Denied INVALID_PARAMS for any other text."""
    found = PLACE.fullmatch(text)
    if found is None or max(int(found[1]), int(found[2])) >= 2**63:
        raise refuse(
            Code.INVALID_PARAMS,
            "Last-Event-ID: not an id of this stream",
            "send the id of the last event you saw, or leave the header out",
            rule="event stream",
        )
    return Place(int(found[1]), int(found[2]))


def here() -> Place:
    """The present end of every stream: what commits from now on comes after it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        (xid,) = cursor.fetchone()
    return Place(xid - 1, 2**63 - 1)


def read(*, caller: Caller, key: bytes, after: Place) -> Page:
    """Events for the caller after a place: others' deeds, and its own refusals.

    An event is given only when no older transaction can still commit before it, so that going on
    from the last place never skips one; and only while the key, given by its digest, is good.
    """
    values: dict[str, Any] = {
        "agent": caller.agent.id,
        "self": caller.actor,
        "key": key,
        "xid": after.xid,
        "seq": after.seq,
        "limit": PAGE,
    }
    with connection.cursor() as cursor:
        cursor.execute(READ, values)
        rows = cursor.fetchall()
    events: list[tuple[Place, dict[str, Any]]] = []
    for xid, seq, *fields, settled in rows:
        if not settled:
            return Page(events, unsettled=True)
        events.append((Place(xid, seq), dict(zip(NAMES, fields, strict=True))))
    return Page(events, unsettled=len(rows) == PAGE)
