"""The file of a memory, which people may edit: what they change is taken in, never overwritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from django.db import transaction

from core.actions import Action
from core.actors import System
from core.database import database_now, hold_lock, needs_transaction
from documents.files import tree_of, write_file
from documents.memory import rules
from documents.memory.entries import (
    FILE_ENTRIES,
    FILE_SIZE,
    MAX_ENTRY,
    MemoryEntry,
    fitting,
    lines_of,
    lines_of_agents,
    memory_text,
    newest_entries,
    replaced_entries,
)
from documents.memory.insertion import insert_row
from documents.memory.owners import MemoryOwner
from documents.models import MemoryFile
from documents.tree import Missing, TooLarge, Unsafe
from ledger.services import record

EDITOR = "MEMORY.md"
"""The author of what a person changed in a file; the file does not say who."""

MAX_TAKEN_IN = 100_000
"""Characters of one change of a file that are taken in."""

MOST_EDITED = 1_000_000
"""Characters of an edited file to which entries are still added: each one writes it as a whole."""

MOST_SINCE = 20
"""Entries since a crash among which the last one in the file is looked for."""


class CannotRead(Exception):
    """The file of a memory is there and cannot be read, or is too large: a person sees to it."""


def take_in_edits(owner: MemoryOwner) -> None:
    """Take in, as a person's entry, what changed in a memory's file since it was written."""
    with suppress(CannotRead):
        if _text_on_disk(owner) == _last_written(owner):
            return
        with transaction.atomic():
            hold_lock("memory", owner.organisation_id, owner.path)
            _take_in(owner)


def write_memory_file(owner: MemoryOwner) -> None:
    """Write the file of a memory; in one that a person edited, only new entries are added.

    Of two concurrent appends the later writes last. What cannot be read is left as it is.
    """
    with suppress(CannotRead), transaction.atomic():
        hold_lock("memory", owner.organisation_id, owner.path)
        kept = _take_in(owner)
        entries, _ = newest_entries(owner=owner, limit=FILE_ENTRIES, size=FILE_SIZE)
        text = _text_to_write(kept, entries)
        if write_file(owner.organisation, owner.path, text):
            _keep(owner, text, _last_of(entries), edited=kept is not None and kept.edited)


def _text_to_write(kept: MemoryFile | None, entries: Sequence[MemoryEntry]) -> str:
    if kept is not None and kept.edited:
        return _with_new_entries(kept, entries)
    return memory_text(entries)


def _with_new_entries(kept: MemoryFile, entries: Sequence[MemoryEntry]) -> str:
    new = [each for each in entries if each.id > kept.last_entry and each.person != EDITOR]
    if not new or len(kept.text) > MOST_EDITED:
        return kept.text
    return f"{kept.text.rstrip()}\n\n{memory_text(new)}"


@needs_transaction
def _take_in(owner: MemoryOwner) -> MemoryFile | None:
    """Insert what a person changed, in the transaction that holds the memory's lock."""
    kept = MemoryFile.objects.filter(organisation_id=owner.organisation_id, path=owner.path).first()
    found = _text_on_disk(owner)
    if found is None or found == (kept.text if kept else None):
        return kept
    newest, _ = newest_entries(
        owner=owner, limit=FILE_ENTRIES + MOST_SINCE, size=FILE_SIZE + MOST_SINCE * MAX_ENTRY
    )
    entries = fitting(newest, limit=FILE_ENTRIES, size=FILE_SIZE)
    if found == memory_text(entries):  # written by an earlier version
        return _keep(owner, found, _last_of(entries), edited=False)
    last = _last_of_ours(kept, found, newest)
    if last is not None:
        return _keep(owner, found, last, edited=kept is not None and kept.edited)
    before = kept.text if kept else memory_text(entries)
    change = _change_of(before, found, _not_repeated(owner, before, found, entries))
    if change:
        now = database_now()
        number = insert_row(owner, change, now, person=EDITOR)
        record(
            Action.MEMORY_APPENDED,
            by=System(name="memory", organisation_id=owner.organisation_id),
            at=now,
            subject=f"memory:{number}",
            details={"scope": owner.scope, "file": owner.path, "edited": True},
        )
    return _keep(owner, found, kept.last_entry if kept else _last_of(entries), edited=True)


def _last_of_ours(kept: MemoryFile | None, found: str, newest: Sequence[MemoryEntry]) -> int | None:
    """The last entry in a file that was written before a crash; None where a person changed it.

    Entries may have come since, but few: each call that follows looks here first.
    """
    for number, entry in enumerate(newest[:MOST_SINCE]):
        if kept is not None and entry.id <= kept.last_entry:
            break
        then = fitting(newest[number:], limit=FILE_ENTRIES, size=FILE_SIZE)
        if found == _text_to_write(kept, then):
            return entry.id
    return None


def _not_repeated(
    owner: MemoryOwner, before: str, after: str, entries: Sequence[MemoryEntry]
) -> AbstractSet[str]:
    """The lines that a person's entry does not repeat.

    Of a shared memory those that no person wrote: not all of its readers may read them. Those of
    entries too that the file no longer has: a person may put back what was removed, or save what
    was read before newer entries took its place. Of an agent's own memory those of entries that
    were corrected or withdrawn (Spec: memory 6).
    """
    if owner.scope == rules.AGENT:
        withdrawn = lines_of(memory_text(replaced_entries(owner=owner)))
        return withdrawn - lines_of(memory_text(entries)) - {""}
    of_people = lines_of(memory_text([each for each in entries if each.person]))
    known = lines_of(before)
    of_agents = lines_of_agents(owner=owner, among=lines_of(after) - known - of_people)
    return (of_agents | known) - of_people - {""}


def _change_of(before: str, after: str, not_repeated: AbstractSet[str]) -> str:
    """What a person wrote into a text and what was removed from it, without some lines.

    Lines are counted, not aligned: agents wrote them, and for many lines of one kind that takes
    minutes.
    """
    was, present = before.splitlines(), after.splitlines()
    new = [line for line in _more_often(present, was) if line.strip() not in not_repeated]
    removed = [line for line in _more_often(was, present) if line.strip() not in not_repeated]
    added = "\n".join(new).strip()
    if quoted := [f"> {line}" for line in removed if line.strip()]:
        added += "\n\nNo longer in the file:\n" + "\n".join(quoted)
    return added.strip()[:MAX_TAKEN_IN]


def _more_often(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    """The lines that are not among the others, or not so often, in their order."""
    left, found = Counter(others), list[str]()
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
        else:
            found.append(line)
    return found


def _keep(owner: MemoryOwner, text: str, last_entry: int, *, edited: bool) -> MemoryFile:
    row, _ = MemoryFile.objects.update_or_create(
        organisation_id=owner.organisation_id,
        path=owner.path,
        defaults={"text": text, "edited": edited, "last_entry": last_entry},
    )
    return row


def _last_of(entries: Sequence[MemoryEntry]) -> int:
    return max((each.id for each in entries), default=0)


def _last_written(owner: MemoryOwner) -> str | None:
    rows = MemoryFile.objects.filter(organisation_id=owner.organisation_id, path=owner.path)
    return rows.values_list("text", flat=True).first()


def _text_on_disk(owner: MemoryOwner) -> str | None:
    try:
        found = tree_of(owner.organisation).read(owner.path)
    except Missing:
        return None
    except (Unsafe, TooLarge, OSError) as problem:
        raise CannotRead(owner.path) from problem
    return found.decode(errors="replace").replace("\0", "\ufffd")
