"""Artifacts: files that agents save under a name, version by version."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from core.actions import Action
from core.database import after_commit, hold_lock
from core.decision import Code, refuse
from core.ids import row_id
from documents.files import write_due, write_file
from documents.memory import rules
from documents.memory.owners import owner_of
from documents.memory.results import SavedArtifact, WholeArtifact
from documents.memory.services import insert_entry, write_on_commit
from documents.models import Artifact
from ledger.services import record
from orgchart.models import Group
from orgchart.policy.compiled import Agent
from toolbox.caller import Caller


def save_artifact(
    *, caller: Caller, name: str, content: str, description: str, now: datetime
) -> SavedArtifact:
    """Save a file of the caller; under a name that it used before, as the next version.

    An entry in the caller's own memory lets a search find it. Raises Denied SCOPE_DENIED.
    """
    caller.require(rules.can_save(name, caller.agent, caller.policy))
    with transaction.atomic():
        hold_lock("artifact", caller.agent.id, name)
        mine = Artifact.objects.filter(agent_id=caller.agent.id, name=name)
        version = (mine.aggregate(last=Max("version"))["last"] or 0) + 1
        row = Artifact.objects.create(
            organisation_id=caller.organisation_id,
            agent_id=caller.agent.id,
            group=_group_of(caller),
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
        insert_entry(caller, rules.AGENT, note, now)
        after_commit(_write_artifact, row, now)
        write_on_commit(owner_of(rules.AGENT, caller.agent, caller.policy))
    return {
        "artifact_id": str(row.id),
        "path": row.path,
        "sha256": row.sha256,
        "version": version,
    }


def read_artifact(*, caller: Caller, artifact_id: str) -> WholeArtifact:
    """An artifact of the caller, or one of its group by an agent whose entries it reads.

    Raises Denied NOT_FOUND.
    """
    rows = Artifact.objects.select_related("group").filter(organisation_id=caller.organisation_id)
    row = rows.filter(id=row_id(artifact_id) or -1).first()
    author = None if row is None else caller.policy.by_id.get(row.agent_id)
    if row is None or author is None or not _is_shared(caller, author, row.group):
        raise refuse(
            Code.NOT_FOUND,
            "there is no such artifact for you",
            "find yours with memory_search",
            rule="an artifact is its author's and its group's (spec: memory 12)",
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


def _group_of(caller: Caller) -> Group | None:
    slug, groups = caller.agent.group, Group.objects.filter(organisation_id=caller.organisation_id)
    return groups.filter(slug=slug).first() if slug else None


def _is_shared(caller: Caller, author: Agent, group: Group | None) -> bool:
    """Whether the caller reads what an author saved in a group, as it reads the group's memory."""
    if author.id == caller.agent.id:
        return True
    is_of_group = group is not None and group.slug == caller.agent.group
    return is_of_group and author.id in rules.memory_writers(caller.policy, caller.agent)


def _write_artifact(saved: Artifact, now: datetime) -> bool:
    """Write the file of the last version under this name; False if the disk refuses."""
    with transaction.atomic():
        hold_lock("artifact", saved.agent_id, saved.name)
        versions = Artifact.objects.filter(agent_id=saved.agent_id, name=saved.name)
        row = versions.select_related("organisation").latest("version")
        if not write_file(row.organisation.slug, row.path, row.content):
            return False
        versions.filter(filed_at=None, version__lte=row.version).update(filed_at=now)
        return True


def write_missing_artifacts(now: datetime) -> int:
    """Write the files of artifacts that a crash or a refusing disk left out; returns how many."""
    rows = Artifact.objects.all()
    return write_due(rows, lambda row: _write_artifact(row, now), now, author="agent_id")
