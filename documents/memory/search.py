"""Ranked search over every memory that the caller may read."""

from __future__ import annotations

import math
from typing import Any

from django.db import connection
from pydantic_core import to_json

from core import paging
from core.ids import row_id
from documents.memory.files import take_in_edits
from documents.memory.owners import owner_of
from documents.memory.query import parse_query
from documents.memory.results import FoundMemories
from documents.memory.rules import memory_writers
from documents.models import WORDS_IN_A_MEMORY, MemoryScope
from toolbox.caller import Caller, address_of

# `OFFSET 0` keeps the index's condition alone: with the others PostgreSQL may read the whole table.
SEARCH = rf"""
WITH query AS (
    SELECT websearch_to_tsquery('english', one.spaced) && one.lexemes::tsquery AS asked,
           one.contains, one.excludes
    FROM jsonb_to_recordset(%(alternatives)s::jsonb)
         AS one(spaced text, lexemes text, contains text[], excludes text[])
), own_group AS (
    SELECT id FROM orgchart_group WHERE organisation_id = %(organisation)s AND slug = %(group)s
), memories AS (
    SELECT string_agg(quote_literal(kind || ' ' || id), ' | ')::tsquery AS searched
    FROM (SELECT 'organisation' AS kind, %(organisation)s::bigint AS id
          UNION ALL SELECT 'agent', %(agent)s::bigint
          UNION ALL SELECT 'group', id FROM own_group) AS each
), found AS (
    SELECT m.id, m.scope, m.author_id, m.person, m.text, m.created_at,
           sum(ts_rank(m.words, query.asked)::float8) AS rank
    FROM query CROSS JOIN memories CROSS JOIN LATERAL (
        SELECT * FROM documents_memory
        WHERE ({WORDS_IN_A_MEMORY}) @@ (query.asked && memories.searched) OFFSET 0
    ) AS m
    WHERE numnode(query.asked) > 0 AND m.words @@ query.asked
      AND NOT EXISTS (
          SELECT FROM unnest(query.contains) AS wanted
          WHERE strpos(lower(regexp_replace(normalize(m.text, NFKC), '\s+', ' ', 'g')),
                       lower(wanted)) = 0)
      AND NOT EXISTS (
          SELECT FROM unnest(query.excludes) AS unwanted
          WHERE strpos(lower(regexp_replace(normalize(m.text, NFKC), '\s+', ' ', 'g')),
                       lower(unwanted)) > 0)
      AND m.organisation_id = %(organisation)s
      AND (m.author_id IS NULL OR m.author_id = ANY(%(writers)s))
      AND NOT EXISTS (SELECT FROM documents_memory newer WHERE newer.replaces_id = m.id)
      AND (m.scope = 'organisation' OR m.agent_id = %(agent)s
           OR m.group_id IN (SELECT id FROM own_group))
    GROUP BY m.id, m.scope, m.author_id, m.person, m.text, m.created_at
)
SELECT id, scope, author_id, person, text, created_at, rank FROM found
WHERE %(rank)s::float8 IS NULL OR (rank, id) < (%(rank)s::float8, %(id)s::bigint)
ORDER BY rank DESC, id DESC LIMIT %(limit)s + 1
"""


def search_memory(*, caller: Caller, query: str, cursor: str | None, limit: int) -> FoundMemories:
    """Entries that match, best first, in every memory that the caller may read."""
    rank, number = _place(cursor)
    for scope in MemoryScope:
        if scope != MemoryScope.GROUP or caller.agent.group:
            take_in_edits(owner_of(scope, caller.agent, caller.policy))
    values: dict[str, Any] = {
        "alternatives": to_json(parse_query(query)).decode(),
        "organisation": caller.organisation_id,
        "group": caller.agent.group,
        "agent": caller.agent.id,
        "writers": memory_writers(caller.policy, caller.agent),
        "rank": rank,
        "id": number,
        "limit": limit,
    }
    with connection.cursor() as db:
        db.execute(SEARCH, values)
        rows = db.fetchall()
    page, more = paging.cut(rows, limit, lambda row: f"{row[6]!r} {row[0]}")
    return {
        "memories": [
            {
                "memory_id": str(row[0]),
                "scope": MemoryScope(row[1]),
                "author": row[3] or address_of(caller, row[2]),
                "text": row[4],
                "created_at": row[5],
                "rank": row[6],
            }
            for row in page
        ],
        "next_cursor": more,
    }


def _place(cursor: str | None) -> tuple[float | None, int | None]:
    place = paging.decode(cursor)
    if place is None:
        return None, None
    rank, _, number = place.partition(" ")
    try:
        value = float(rank)
    except ValueError:
        value = math.nan
    found = row_id(number)
    if found is None or not math.isfinite(value):
        raise paging.unknown_cursor()
    return value, found
