"""An agent's event stream, read from the ledger: as it commits, from any place, nothing twice."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from django.db import DataError, connection
from pydantic import TypeAdapter
from pydantic_core import from_json

from core.database import fetch_row
from core.decision import Code, Denied, refuse
from orgchart.pauses.rules import PauseFacts
from toolbox.caller import Caller
from toolbox.faces.sealed import seal, unseal

PURPOSE = "event stream"
PAGE = 200
LAST = 2**63 - 1
SNAPSHOT = r"\d{1,19}:\d{1,19}:(?:\d{1,19}(?:,\d{1,19})*)?"
PLACE = re.compile(
    rf"([0-9a-f]{{8}})-(\d{{1,19}})-([0-9a-f]{{8}})-({SNAPSHOT})(?:-({SNAPSHOT}))?", re.ASCII
)
READ_ANEW = (
    "leave the header out, and read with read_inbox and read_contract what you may have missed"
)

# Transaction numbers mean something in one history of one cluster only: a dump restored elsewhere
# and a standby or a backup that takes over (a new timeline) go on with other ones.
HISTORY = """
left(md5((pg_control_system()).system_identifier
         || left(pg_walfile_name(pg_current_wal_lsn()), 8)), 8)
"""
BEGIN = f"""
SELECT {HISTORY}, pg_current_snapshot()::text,
       coalesce(e.seq, 0), coalesce(left(e.id::text, 8), '00000000')
FROM (VALUES (1)) AS one LEFT JOIN (
    SELECT seq, id FROM ledger_event ORDER BY seq DESC LIMIT 1
) AS e ON true
"""
FIND = f"""
SELECT xid FROM ledger_event
WHERE seq = %(seq)s AND left(id::text, 8) = %(tag)s AND {HISTORY} = %(history)s
  AND pg_snapshot_xmax(%(seen)s::pg_snapshot) <= pg_snapshot_xmax(%(upto)s::pg_snapshot)
  AND pg_snapshot_xmax(%(upto)s::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
"""
READ = f"""
WITH present AS (
    SELECT (pg_control_system()).system_identifier AS era,
           coalesce(nullif(%(within)s, '')::pg_snapshot, pg_current_snapshot()) AS until,
           {HISTORY} = %(history)s AND EXISTS (
               SELECT 1 FROM orgchart_apikey k JOIN orgchart_agent a ON a.id = k.agent_id
               WHERE k.digest = %(key)s AND k.revoked_at IS NULL AND a.active
           ) AS good, (
               SELECT jsonb_build_object('reason', reason, 'paused_at', paused_at,
                                         'is_everyone', agent_id IS NULL,
                                         'by_board', by_board)
               FROM orgchart_pause
               WHERE organisation_id = %(organisation)s AND ended_at IS NULL
                 AND (agent_id IS NULL OR agent_id = %(agent)s)
               ORDER BY agent_id NULLS FIRST LIMIT 1
           ) AS pause
)
SELECT present.good, present.until::text, present.pause, e.*
FROM present LEFT JOIN LATERAL (
    SELECT xid, seq, left(id::text, 8),
           kind, action, actor, tool, subject, code, reason, at, details
    FROM ledger_event
    WHERE for_agent_id = %(agent)s AND era = present.era AND (xid, seq) > (%(xid)s, %(seq)s)
      AND kind <> '' AND (kind = 'tool_denied' OR actor <> %(self)s)
      AND NOT pg_visible_in_snapshot(xid::text::xid8, %(seen)s::pg_snapshot)
      AND pg_visible_in_snapshot(xid::text::xid8, present.until)
    ORDER BY xid, seq LIMIT %(limit)s
) AS e ON present.good
ORDER BY e.xid, e.seq
"""
ASKED_OF_A_DENIAL = ("call_id", "mode", "next_action")
NAMES = ("kind", "action", "actor", "tool", "subject", "code", "reason", "at", "details")


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """How far a watcher has come: it knows all that the snapshot `seen` shows.

    In the middle of a page it also knows what the snapshot `within` shows up to the event `xid`,
    `seq`. That event is named because it proves the history: the one that was given last or, at
    the beginning, the newest of the ledger. A place whose event is gone is refused.
    """

    history: str
    seq: int
    tag: str
    seen: str
    within: str = ""
    xid: int = 0

    def __str__(self) -> str:
        """The id that a client is given. Numbers of transactions would tell what others write."""
        parts = (self.history, str(self.seq), self.tag, self.seen, self.within)
        return seal("-".join(part for part in parts if part), purpose=PURPOSE)

    @property
    def after(self) -> tuple[int, int]:
        """Transaction and number that everything not yet known is greater than."""
        return (self.xid, self.seq) if self.within else (int(self.seen.split(":")[0]) - 1, LAST)


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Events with their places, where to go on, whether at once, and whether the stream is over.

    `pause` is what ended it, where a person paused the agent.
    """

    events: list[tuple[StreamPlace, dict[str, Any]]]
    place: StreamPlace
    more: bool = False
    over: bool = False
    pause: PauseFacts | None = None


def place_of(text: str) -> StreamPlace:
    """The place that a `Last-Event-ID` names.

    Raises Denied INVALID_PARAMS for any other text, and for a place of a history that this database
    no longer has: after a restore or a failover transaction numbers are given anew, and going on
    from an old one could skip events silently.
    """
    try:
        found = PLACE.fullmatch(unseal(text, purpose=PURPOSE))
    except ValueError:
        found = None
    if found is None:
        raise _no_place()
    history, seq, tag, seen, within = found.groups(default="")
    values: dict[str, Any] = {"history": history, "seq": int(seq), "tag": tag}
    values |= {"seen": seen, "upto": within or seen}
    try:
        row = fetch_row(FIND, values)
    except DataError as failure:  # looks like a snapshot, and is none
        raise _no_place() from failure
    if row is None:
        raise _refuse("its event is not in this database, which may have been restored", READ_ANEW)
    return StreamPlace(history, int(seq), tag, seen, within, row[0])


def _no_place() -> Denied:
    return _refuse("not an id of this stream", "send the id of the last event you saw, or none")


def _refuse(why: str, next_action: str) -> Denied:
    return refuse(Code.INVALID_PARAMS, f"Last-Event-ID: {why}", next_action, rule="event stream")


def here() -> StreamPlace:
    """The present end of every stream: what is visible now does not come any more."""
    history, seen, seq, tag = fetch_row(BEGIN)
    return StreamPlace(history, seq, tag, seen)


def read(*, caller: Caller, key: bytes, after: StreamPlace) -> StreamPage:
    """Events for the caller that became visible after a place: others' deeds, its own refusals.

    Each snapshot shows what the one before did and what has committed since, so events come as they
    commit, and no transaction that is still open, here or in another database, holds them back.
    The stream is over when the key, given by its digest, is no longer good, when the history
    changed, or while the agent is paused: what happens then comes when it goes on from its place.
    """
    xid, seq = after.after
    values: dict[str, Any] = {
        "agent": caller.agent.id,
        "organisation": caller.organisation_id,
        "self": caller.actor,
        "key": key,
        "history": after.history,
        "seen": after.seen,
        "within": after.within,
        "xid": xid,
        "seq": seq,
        "limit": PAGE,
    }
    with connection.cursor() as cursor:
        cursor.execute(READ, values)
        rows = cursor.fetchall()
    good, until, pause = rows[0][:3]
    if not good:
        return StreamPage([], after, over=True)
    if pause is not None:
        return StreamPage([], after, over=True, pause=_paused(pause))
    found = [row[3:] for row in rows if row[3] is not None]
    full = len(found) == PAGE
    events = [
        (
            StreamPlace(after.history, seq, tag, after.seen, until, xid),
            _shown(dict(zip(NAMES, fields, strict=True))),
        )
        for xid, seq, tag, *fields in found
    ]
    if full:
        return StreamPage(events, events[-1][0], more=True)
    if not events:
        end = replace(after, seen=until, within="")
    else:
        end = replace(events[-1][0], seen=until, within="")
        events[-1] = (end, events[-1][1])
    return StreamPage(events, end, more=bool(after.within))


def _paused(columns: str) -> PauseFacts:
    return TypeAdapter(PauseFacts).validate_json(columns)


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    """The event as a watcher sees it; a denial carries its own fields too (Spec: modes 17)."""
    details = from_json(event["details"])
    event["details"] = details
    if event["kind"] == "tool_denied":
        event |= {
            "tool_name": event["tool"],
            "error_code": event["code"],
            "message": event["reason"],
        }
        event |= {name: details.get(name) or "" for name in ASKED_OF_A_DENIAL}
    return event
