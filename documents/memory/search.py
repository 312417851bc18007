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

RANKED = 1000
"""Matches that a search ranks; where there are more, it ranks the newest, too (Spec: memory 7)."""

LITERAL = 100
"""Matches in which a search looks for literal texts: each is normalized as a whole for it."""

NORMAL = r"lower(regexp_replace(normalize(m.text, NFKC), ' \s+|(?! )\s+', ' ', 'g'))"
"""The text with one space for each run of white space. A space alone is left as it is: to replace
each of them by itself takes twenty times as long."""
READABLE = """m.organisation_id = %(organisation)s
    AND (m.scope = 'organisation' OR m.agent_id = %(agent)s
         OR m.group_id IN (SELECT id FROM own_group))
    AND (m.author_id IS NULL OR m.author_id = ANY(%(writers)s))
    AND NOT EXISTS (SELECT FROM documents_memory newer WHERE newer.replaces_id = m.id OFFSET 0)"""
"""`OFFSET 0` keeps PostgreSQL from making this a join: a hash join would read each match before the
`LIMIT` takes its first."""
LITERALLY = f"""(cardinality(query.contains) + cardinality(query.excludes) = 0 OR EXISTS (
    WITH one AS MATERIALIZED (
        SELECT {NORMAL} AS normal FROM documents_memory m WHERE m.id = each.id)
    SELECT FROM one
    WHERE NOT EXISTS (
        SELECT FROM unnest(query.contains) AS wanted
        WHERE strpos(one.normal, lower(wanted)) = 0)
    AND NOT EXISTS (
        SELECT FROM unnest(query.excludes) AS unwanted
        WHERE strpos(one.normal, lower(unwanted)) > 0)))"""

RANK = "ts_rank(m.words, query.asked || query.asked)::float8"
"""PostgreSQL ranks `one | other` word by word. For `one & other` it compares each place of a word
with each place of each other one: an entry of many short words takes it a tenth of a second."""

# A materialized part is planned for itself and read only as far as the `LIMIT` outside it needs: it
# keeps the index's condition alone, and PostgreSQL does not read the whole table to find the first.
SEARCH = rf"""
WITH query AS (
    SELECT number, websearch_to_tsquery('english', spaced) && lexemes::tsquery AS asked, contains,
           excludes
    FROM ROWS FROM (
        jsonb_to_recordset(%(alternatives)s::jsonb)
        AS (spaced text, lexemes text, contains text[], excludes text[])
    ) WITH ORDINALITY AS one(spaced, lexemes, contains, excludes, number)
), own_group AS (
    SELECT id FROM orgchart_group WHERE organisation_id = %(organisation)s AND slug = %(group)s
), memories AS (
    SELECT string_agg(quote_literal(kind || ' ' || id), ' | ')::tsquery AS searched
    FROM (SELECT 'organisation' AS kind, %(organisation)s::bigint AS id
          UNION ALL SELECT 'agent', %(agent)s::bigint
          UNION ALL SELECT 'group', id FROM own_group) AS each
), first AS MATERIALIZED (
    SELECT query.number, m.id, {RANK} AS rank
    FROM query CROSS JOIN memories CROSS JOIN LATERAL (
        WITH matching AS MATERIALIZED (
            SELECT * FROM documents_memory
            WHERE ({WORDS_IN_A_MEMORY}) @@ (query.asked && memories.searched)
        )
        SELECT id, words FROM matching AS m WHERE {READABLE} AND m.words @@ query.asked
        LIMIT %(ranked)s
    ) AS m
    WHERE numnode(query.asked) > 0
), newest AS MATERIALIZED (
    (SELECT * FROM documents_memory
     WHERE scope = 'organisation' AND organisation_id = %(organisation)s
     ORDER BY id DESC LIMIT %(ranked)s)
    UNION ALL
    (SELECT * FROM documents_memory WHERE scope = 'agent' AND agent_id = %(agent)s
     ORDER BY id DESC LIMIT %(ranked)s)
    UNION ALL
    (SELECT * FROM documents_memory
     WHERE scope = 'group' AND group_id = (SELECT id FROM own_group)
     ORDER BY id DESC LIMIT %(ranked)s)
), found AS (
    SELECT id, sum(rank) AS rank FROM (
        SELECT * FROM first
        UNION
        SELECT query.number, m.id, {RANK}
        FROM query JOIN newest AS m ON {READABLE} AND m.words @@ query.asked
        WHERE query.number IN (
            SELECT number FROM first GROUP BY number HAVING count(*) = %(ranked)s)
    ) AS each JOIN query USING (number)
    WHERE {LITERALLY}
    GROUP BY id
)
SELECT id, m.scope, m.author_id, m.person, m.text, m.created_at, page.rank FROM (
    SELECT id, rank FROM found
    WHERE %(rank)s::float8 IS NULL OR (rank, id) < (%(rank)s::float8, %(id)s::bigint)
    ORDER BY rank DESC, id DESC LIMIT %(limit)s + 1
) AS page JOIN documents_memory m USING (id)
ORDER BY page.rank DESC, id DESC
"""


def search_memory(*, caller: Caller, query: str, cursor: str | None, limit: int) -> FoundMemories:
    """Entries that match, best first, in every memory that the caller may read."""
    rank, number = _place(cursor)
    for scope in MemoryScope:
        if scope != MemoryScope.GROUP or caller.agent.group:
            take_in_edits(owner_of(scope, caller.agent, caller.policy))
    alternatives = parse_query(query)
    literal = any(each.contains or each.excludes for each in alternatives)
    values: dict[str, Any] = {
        "alternatives": to_json(alternatives).decode(),
        "ranked": math.ceil((LITERAL if literal else RANKED) / max(len(alternatives), 1)),
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
