"""Appending to memories and saving artifacts: rows first, files after (seed 003 §2.1, §5.1)."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from core.actions import Action
from core.decision import require
from documents.filing import project
from documents.memory import rules
from documents.memory.reading import headed, newest
from documents.memory.words import words_of
from documents.models import Artifact
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


def append(*, caller: Caller, scope: str, text: str, now: datetime) -> dict[str, Any]:
    """Add an entry to a memory. Raises Denied: SCOPE_DENIED, LEVEL_DENIED."""
    require(rules.can_append(scope, caller.agent, caller.policy))
    with transaction.atomic():
        number = _inserted(caller, scope, text, now)
        record(
            Action.MEMORY_APPENDED,
            by=caller,
            at=now,
            subject=f"memory:{number}",
            details={"scope": scope, "file": rules.file_of(scope, caller.agent)},
        )
        transaction.on_commit(partial(_file, caller, scope), robust=True)
    return {"memory_id": str(number), "scope": scope, "created_at": now}


def save_artifact(
    *, caller: Caller, name: str, content: str, description: str, now: datetime
) -> dict[str, Any]:
    """Keep something the caller made; under a name it used before, as the next version.

    It is noted in the caller's own memory, where a search finds it. Raises Denied SCOPE_DENIED.
    """
    require(rules.can_save(name, caller.agent, caller.policy))
    with transaction.atomic():
        _lock(f"artifact {caller.agent.id} {name}")
        mine = Artifact.objects.filter(agent_id=caller.agent.id, name=name)
        version = (mine.aggregate(last=Max("version"))["last"] or 0) + 1
        row = Artifact.objects.create(
            organisation_id=caller.organisation_id,
            agent_id=caller.agent.id,
            name=name,
            version=version,
            path=rules.artifact_path(name, caller.agent),
            description=description,
            content=content,
            sha256=hashlib.sha256(content.encode()).hexdigest(),
            frame_ref=str(caller.frame_id or ""),
            created_at=now,
        )
        record(
            Action.ARTIFACT_SAVED,
            by=caller,
            at=now,
            subject=f"artifact:{row.id}",
            details={"path": row.path, "sha256": row.sha256, "version": version},
        )
        note = f"Saved artifact {row.id}: {name} (version {version}). {description}".rstrip()
        _inserted(caller, rules.AGENT, note, now)
        transaction.on_commit(partial(_file_artifact, caller, name), robust=True)
        transaction.on_commit(partial(_file, caller, rules.AGENT), robust=True)
    return {
        "artifact_id": str(row.id),
        "path": row.path,
        "sha256": row.sha256,
        "version": version,
    }


def _inserted(caller: Caller, scope: str, text: str, now: datetime) -> int:
    words = words_of(text)
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
                "spaced": words.spaced,
                "lexemes": list(words.lexemes),
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


def _file(caller: Caller, scope: str) -> None:
    """Write the file anew from the rows; of two appends at once the later writes last."""
    path = rules.file_of(scope, caller.agent)
    with transaction.atomic():
        _lock(f"memory {caller.organisation_id} {path}")
        entries, _ = newest(caller=caller, scope=scope, limit=1000, size=FILE_SIZE)
        project(caller.policy.organisation, path, headed(caller, entries))


def _file_artifact(caller: Caller, name: str) -> None:
    with transaction.atomic():
        _lock(f"artifact {caller.agent.id} {name}")
        row = Artifact.objects.filter(agent_id=caller.agent.id, name=name).latest("version")
        project(caller.policy.organisation, row.path, row.content)


def _lock(what: str) -> None:
    """Let one transaction at a time do this, whoever runs it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [what])
