"""Inserting one entry of a memory with its search index."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from core.database import fetch_row, needs_transaction
from documents.memory.owners import MemoryOwner
from documents.memory.query import split_text, with_few_marks
from orgchart.models import Group

INSERT = """
INSERT INTO documents_memory (organisation_id, scope, agent_id, group_id, author_id, person, text,
                              words, replaces_id, created_at)
VALUES (%(organisation)s, %(scope)s, %(agent)s, %(group)s, %(author)s, %(person)s, %(text)s,
        to_tsvector('english', %(spaced)s) || array_to_tsvector(%(lexemes)s::text[]),
        %(replaces)s, %(now)s)
RETURNING id
"""


@needs_transaction
def insert_row(
    owner: MemoryOwner,
    text: str,
    now: datetime,
    *,
    author_id: int | None = None,
    person: str = "",
    replaces: int | None = None,
) -> int:
    """Insert an entry of an agent or a person and return its id; `replaces` is what it corrects."""
    text = with_few_marks(text)
    split = split_text(text)
    values: dict[str, Any] = {
        "organisation": owner.organisation_id,
        "scope": owner.scope,
        "agent": owner.agent_id,
        "group": _group_id(owner) if owner.group else None,
        "author": author_id,
        "person": person,
        "text": text,
        "spaced": split.spaced,
        "lexemes": list(split.lexemes),
        "replaces": replaces,
        "now": now,
    }
    (number,) = fetch_row(INSERT, values)
    return int(number)


def _group_id(owner: MemoryOwner) -> int:
    rows = Group.objects.filter(organisation_id=owner.organisation_id, slug=owner.group)
    return rows.values_list("id", flat=True).get()
