"""Reading memories: pages of one, newest last; ranked search over all that the caller may see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from pydantic_core import to_json

from core import paging
from core.decision import Code, refuse, require
from documents.memory import rules
from documents.memory.words import asked_for
from documents.models import Artifact, Memory, Scope
from orgchart.models import Agent
from toolbox.caller import Caller

PAGE_SIZE = 100_000
"""Characters of one page; one entry always fits."""

SEARCH = r"""
WITH asked AS (
    SELECT websearch_to_tsquery('english', way.spaced) && way.lexemes::tsquery AS words,
           way.has, way.lacks
    FROM jsonb_to_recordset(%(ways)s::jsonb)
         AS way(spaced text, lexemes text, has text[], lacks text[])
), mine AS (
    SELECT id FROM orgchart_group WHERE organisation_id = %(organisation)s AND slug = %(group)s
), found AS (
    SELECT m.id, m.scope, m.author_id, m.text, m.created_at,
           sum(ts_rank(m.words, asked.words)::float8) AS rank
    FROM documents_memory m CROSS JOIN asked
    WHERE m.words @@ asked.words
      AND NOT EXISTS (
          SELECT FROM unnest(asked.has) AS wanted
          WHERE strpos(lower(regexp_replace(normalize(m.text, NFKC), '\s+', ' ', 'g')),
                       lower(wanted)) = 0)
      AND NOT EXISTS (
          SELECT FROM unnest(asked.lacks) AS unwanted
          WHERE strpos(lower(regexp_replace(normalize(m.text, NFKC), '\s+', ' ', 'g')),
                       lower(unwanted)) > 0)
      AND m.organisation_id = %(organisation)s
      AND (m.scope = 'organisation' OR m.agent_id = %(agent)s
           OR m.group_id IN (SELECT id FROM mine))
    GROUP BY m.id
)
SELECT id, scope, author_id, text, created_at, rank FROM found
WHERE %(rank)s::float8 IS NULL OR (rank, id) < (%(rank)s::float8, %(id)s::bigint)
ORDER BY rank DESC, id DESC LIMIT %(limit)s + 1
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a memory."""

    id: int
    author_id: int
    text: str
    created_at: datetime


def read_memory(*, caller: Caller, scope: str, cursor: str | None, limit: int) -> dict[str, Any]:
    """The newest part of a memory as its MEMORY.md, oldest entry first; `next_cursor` goes back.

    Raises Denied: SCOPE_DENIED for a group of one that has none, INVALID_PARAMS for the cursor.
    """
    require(rules.can_read(scope, caller.agent))
    entries, more = newest(
        caller=caller,
        scope=scope,
        limit=limit,
        size=PAGE_SIZE,
        before=paging.number(paging.decode(cursor)),
    )
    return {
        "scope": scope,
        "path": rules.file_of(scope, caller.agent),
        "text": headed(caller, entries),
        "entries": len(entries),
        "next_cursor": paging.encode(str(entries[-1].id)) if more else None,
    }


def read_artifact(*, caller: Caller, artifact_id: str) -> dict[str, Any]:
    """An artifact of the caller or of a member of its group. Raises Denied NOT_FOUND."""
    number = int(artifact_id) if artifact_id.isascii() and artifact_id.isdigit() else -1
    row = Artifact.objects.filter(id=number, organisation_id=caller.organisation_id).first()
    author = None if row is None else caller.policy.by_id.get(row.agent_id)
    if row is None or author is None or not _shared(caller, author.handle, author.group):
        raise refuse(
            Code.NOT_FOUND,
            "there is no such artifact for you",
            "find yours with memory_search",
            rule="an artifact is its author's and its group's",
        )
    return {
        "artifact_id": str(row.id),
        "name": row.name,
        "version": row.version,
        "author": author.address,
        "path": row.path,
        "description": row.description,
        "sha256": row.sha256,
        "created_at": row.created_at,
        "text": row.content,
    }


def memory_search(*, caller: Caller, query: str, cursor: str | None, limit: int) -> dict[str, Any]:
    """Entries that hold what is asked for, best first, over all that the caller may see."""
    rank, number = _place(cursor)
    values: dict[str, Any] = {
        "ways": to_json(asked_for(query)).decode(),
        "organisation": caller.organisation_id,
        "group": caller.agent.group,
        "agent": caller.agent.id,
        "rank": rank,
        "id": number,
        "limit": limit,
    }
    with connection.cursor() as db:
        db.execute(SEARCH, values)
        rows = db.fetchall()
    page = rows[:limit]
    return {
        "memories": [
            {
                "memory_id": str(row[0]),
                "scope": row[1],
                "author": author_of(caller, row[2]),
                "text": row[3],
                "created_at": row[4],
                "rank": row[5],
            }
            for row in page
        ],
        "next_cursor": (
            paging.encode(f"{page[-1][5]!r} {page[-1][0]}") if len(rows) > limit else None
        ),
    }


def newest(
    *, caller: Caller, scope: str, limit: int, size: int, before: int | None = None
) -> tuple[list[Entry], bool]:
    """The newest entries of a memory, newest first, at most so many characters; whether more."""
    rows = Memory.objects.filter(organisation_id=caller.organisation_id, scope=Scope(scope))
    if scope == rules.AGENT:
        rows = rows.filter(agent_id=caller.agent.id)
    elif scope == rules.GROUP:
        rows = rows.filter(group__slug=caller.agent.group)
    if before is not None:
        rows = rows.filter(id__lt=before)
    found: list[Entry] = []
    left = size
    columns = rows.order_by("-id").values_list("id", "author_id", "text", "created_at")
    for row in columns[: limit + 1]:
        entry = Entry(*row)
        left -= len(entry.text)
        if len(found) == limit or (left < 0 and found):
            return found, True
        found.append(entry)
    return found, False


def headed(caller: Caller, entries: Sequence[Entry]) -> str:
    """Entries, given newest first, as the text of a MEMORY.md."""
    return "\n".join(
        f"## {entry.created_at.astimezone(UTC):%Y-%m-%d %H:%M} {author_of(caller, entry.author_id)}"
        f"\n\n{entry.text}\n"
        for entry in reversed(entries)
    )


def author_of(caller: Caller, agent_id: int) -> str:
    """An author's address."""
    agent = caller.policy.by_id.get(agent_id)
    return agent.address if agent else Agent.objects.get(id=agent_id).handle


def _shared(caller: Caller, handle: str, group: str) -> bool:
    return handle == caller.handle or (bool(group) and group == caller.agent.group)


def _place(cursor: str | None) -> tuple[float | None, int | None]:
    place = paging.decode(cursor)
    if place is None:
        return None, None
    rank, _, number = place.partition(" ")
    try:
        value = float(rank)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise paging.unknown_cursor()
    return value, paging.number(number)
