"""Appending to memories: a row first, then its file (seed 003 §2.1, §5.1)."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import connection, transaction

from core.actions import Action
from core.database import needs_transaction
from documents.files import write_file
from documents.memory import rules
from documents.memory.entries import memory_text, newest_entries
from documents.memory.query import split_text
from documents.memory.results import AppendedMemory
from documents.models import MemoryScope
from ledger.services import record
from orgchart.models import Group
from toolbox.caller import Caller

FILE_SIZE = 200_000
"""Characters of the newest entries that the file of a memory shows; the rows hold all."""

INSERT = """
INSERT INTO documents_memory (organisation_id, scope, agent_id, group_id, author_id, text, words,
                              created_at)
VALUES (%(organisation)s, %(scope)s, %(agent)s, %(group)s, %(author)s, %(text)s,
        to_tsvector('english', %(spaced)s) || array_to_tsvector(%(lexemes)s::text[]), %(now)s)
RETURNING id
"""


def append_memory(*, caller: Caller, scope: str, text: str, now: datetime) -> AppendedMemory:
    """Add an entry to a memory. Raises Denied: SCOPE_DENIED, LEVEL_DENIED."""
    caller.require(rules.can_append(scope, caller.agent, caller.policy))
    with transaction.atomic():
        number = insert_entry(caller, scope, text, now)
        record(
            Action.MEMORY_APPENDED,
            by=caller,
            at=now,
            subject=f"memory:{number}",
            details={"scope": scope, "file": rules.file_of(scope, caller.agent)},
        )
        transaction.on_commit(partial(write_memory_file, caller, scope), robust=True)
    return {"memory_id": str(number), "scope": MemoryScope(scope), "created_at": now}


@needs_transaction
def insert_entry(caller: Caller, scope: str, text: str, now: datetime) -> int:
    """Insert an entry into a memory of the caller and return its id."""
    split = split_text(text)
    with connection.cursor() as cursor:
        cursor.execute(
            INSERT,
            {
                "organisation": caller.organisation_id,
                "scope": scope,
                "agent": caller.agent.id if scope == rules.AGENT else None,
                "group": group_id(caller) if scope == rules.GROUP else None,
                "author": caller.agent.id,
                "text": text,
                "spaced": split.spaced,
                "lexemes": list(split.lexemes),
                "now": now,
            },
        )
        (number,) = cursor.fetchone()
    return int(number)


def group_id(caller: Caller) -> int:
    """The row of the caller's group."""
    return Group.objects.values_list("id", flat=True).get(
        organisation_id=caller.organisation_id, slug=caller.agent.group
    )


def write_memory_file(caller: Caller, scope: str) -> None:
    """Write the file of a memory from its rows; of two concurrent appends the later writes last."""
    path = rules.file_of(scope, caller.agent)
    with transaction.atomic():
        lock(f"memory {caller.organisation_id} {path}")
        entries, _ = newest_entries(caller=caller, scope=scope, limit=1000, size=FILE_SIZE)
        write_file(caller.policy.organisation, path, memory_text(caller, entries))


@needs_transaction
def lock(what: str) -> None:
    """Hold the lock of this name to the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [what])
