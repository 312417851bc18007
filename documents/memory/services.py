"""Appending to memories, and people's corrections: a row first, then its file (Spec: memory 1)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actions import Action
from core.actors import Person
from core.blank import is_blank
from core.database import after_commit, hold_lock, needs_transaction
from core.decision import Code, Denied, refuse
from core.interventions import record_intervention
from core.permissions import Deed, reason_missing, require_deed
from documents.memory import rules
from documents.memory.files import take_in_edits, write_memory_file
from documents.memory.insertion import insert_row
from documents.memory.owners import MemoryOwner, owner_of, owner_of_row
from documents.memory.results import AppendedMemory
from documents.models import Memory, MemoryScope
from ledger.services import record
from toolbox.caller import Caller


def append_memory(*, caller: Caller, scope: str, text: str, now: datetime) -> AppendedMemory:
    """Add an entry to a memory. Raises Denied: SCOPE_DENIED, LEVEL_DENIED."""
    caller.require(rules.can_append(scope, caller.agent, caller.policy))
    owner = owner_of(scope, caller.agent, caller.policy)
    with transaction.atomic():
        number = insert_entry(caller, scope, text, now)
        record(
            Action.MEMORY_APPENDED,
            by=caller,
            at=now,
            subject=f"memory:{number}",
            details={"scope": scope, "file": owner.path},
        )
        write_on_commit(owner)
    return {"memory_id": str(number), "scope": MemoryScope(scope), "created_at": now}


@needs_transaction
def insert_entry(caller: Caller, scope: str, text: str, now: datetime) -> int:
    """Insert an entry into a memory of the caller, after what people changed in its file."""
    owner = owner_of(scope, caller.agent, caller.policy)
    take_in_edits(owner)
    return insert_row(owner, text, now, author_id=caller.agent.id)


@needs_transaction
def write_on_commit(owner: MemoryOwner) -> None:
    """Write the file of a memory after this transaction is committed."""
    after_commit(write_memory_file, owner)


def add_as_person(*, memory_id: int, text: str, person: Person, now: datetime) -> int:
    """Add a person's entry to the memory that an entry belongs to; returns its id."""
    return _write_as_person(memory_id, text, person, now)


def correct_memory(*, memory_id: int, text: str, reason: str, person: Person, now: datetime) -> int:
    """Replace an entry by a person's; agents read the new one only, the old one stays a row."""
    return _write_as_person(memory_id, text, person, now, reason=reason, action="correct_memory")


def withdraw_memory(*, memory_id: int, reason: str, person: Person, now: datetime) -> int:
    """Take an entry out of what agents read; it stays a row."""
    return _write_as_person(memory_id, "", person, now, reason=reason, action="withdraw_memory")


def _write_as_person(
    memory_id: int, text: str, person: Person, now: datetime, *, action: str = "", reason: str = ""
) -> int:
    """Write an entry; with an action it replaces the other one, which is an intervention.

    Raises Denied: NOT_YOURS by group, INVALID_PARAMS for an intervention without a reason,
    NOT_FOUND, INVALID_TRANSITION for a replaced entry. Spec: people 32.
    """
    replaces = bool(action)
    require_deed(person, Deed.KEEP_MEMORY)
    if replaces and is_blank(reason):
        raise Denied(reason_missing(Deed.KEEP_MEMORY))
    with transaction.atomic():
        hold_lock("memory entry", memory_id)
        rows = Memory.objects.select_related("organisation", "agent", "group")
        row = rows.filter(id=memory_id, organisation_id=person.organisation_id).first()
        if row is None:
            raise refuse(Code.NOT_FOUND, "there is no such memory", "look at the list again")
        if replaces and not row.is_current:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"memory {row.id} was corrected or withdrawn before",
                "open the entry that replaced it",
                rule="an entry is replaced once",
            )
        owner = owner_of_row(row)
        number = insert_row(
            owner, text, now, person=person.username, replaces=row.id if replaces else None
        )
        record(
            Action.MEMORY_APPENDED,
            by=person,
            at=now,
            subject=f"memory:{number}",
            reason=reason,
            details={"file": owner.path, **({"replaces": row.id} if replaces else {})},
        )
        if replaces:
            record_intervention(
                person,
                deed=Deed.KEEP_MEMORY,
                subject=f"memory:{row.id}",
                trigger_condition=f"entry in {owner.path}"[:200],
                action_taken=action,
                reason=reason,
                now=now,
            )
        write_on_commit(owner)
    return number
