"""Writing documents: a row with its event in one transaction, a file after it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from core.actions import Action
from core.database import hold_lock, in_last, insert_with_free_id, needs_transaction
from documents import rules
from documents.board_notes import note_for_board
from documents.files import write_document_on_commit
from documents.models import Document, DocumentKind, ReportType
from documents.results import WrittenDocument
from ledger.services import record
from toolbox.caller import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDraft:
    """A document before it has a file name."""

    kind: DocumentKind
    folder: str
    title: str
    body: str
    report_type: str = ""
    department: str = ""
    for_board: bool = False
    contract_ref: str = ""


def write_note(
    *, caller: Caller, title: str, content: str, for_board: bool, now: datetime
) -> WrittenDocument:
    """Write a note of the caller; the top agent may mark one for the Board (Spec: escalation 1).

    Spec: files 12.

    Raises Denied: LEVEL_DENIED for another agent's mark, RATE_LIMITED for too many within an hour,
    SCOPE_DENIED outside the write scope.
    """
    draft = DocumentDraft(
        kind=DocumentKind.NOTE,
        folder=rules.notes_folder(caller.agent),
        title=title,
        body=content,
        for_board=for_board,
    )
    return _write_document(caller, draft, now)


def write_report(
    *, caller: Caller, title: str, content: str, report_type: str, now: datetime
) -> WrittenDocument:
    """Write a report in the caller's own folder below reports/ (Spec: files 13).

    Raises Denied SCOPE_DENIED if its role has no such folder.
    """
    department = rules.department_of(caller.agent, caller.policy)
    return _write_document(caller, _report(title, content, report_type, department), now)


def write_prd(*, caller: Caller, title: str, content: str, now: datetime) -> WrittenDocument:
    """Write a product requirements document (Spec: files 15). Raises Denied SCOPE_DENIED."""
    draft = DocumentDraft(kind=DocumentKind.PRD, folder=rules.PRDS, title=title, body=content)
    return _write_document(caller, draft, now)


@needs_transaction
def file_report(
    *,
    caller: Caller,
    title: str,
    body: str,
    report_type: str,
    department: str,
    contract_ref: str,
    now: datetime,
) -> Document:
    """File a report that a higher room has accepted (Spec: files 13).

    The folder is that of the work's department, not the author's choice, so the author's write
    scope does not matter.
    """
    draft = _report(title, body, report_type, department, contract_ref)
    return insert_document(caller, draft, Action.REPORT_FILED, now)


def _report(
    title: str, body: str, report_type: str, department: str, contract_ref: str = ""
) -> DocumentDraft:
    return DocumentDraft(
        kind=DocumentKind.REPORT,
        folder=rules.reports_folder(department),
        title=title,
        body=body,
        report_type=ReportType(report_type).value,
        department=department,
        contract_ref=contract_ref,
    )


def _write_document(caller: Caller, draft: DocumentDraft, now: datetime) -> WrittenDocument:
    path = draft.folder + rules.file_name(draft.title, now)
    caller.require(rules.can_write(path, caller.agent, caller.policy))
    with transaction.atomic():
        if draft.for_board:
            _require_place_for_board(caller, now)
        row = insert_document(caller, draft, Action(f"{draft.kind}.written"), now)
    written: WrittenDocument = {
        "document_id": str(row.id),
        "kind": draft.kind,
        "path": row.path,
        "title": row.title,
        "sha256": row.sha256,
        "created_at": row.created_at,
    }
    if row.for_board:
        written["for_board"] = True
    return written


def _require_place_for_board(caller: Caller, now: datetime) -> None:
    """Until the transaction ends, no other call of the agent writes a note for the Board."""
    hold_lock("notes for the board", caller.agent.id)
    mine = Document.objects.filter(
        in_last(timedelta(hours=1), "created_at", now=now),
        organisation_id=caller.organisation_id,
        author_id=caller.agent.id,
        for_board=True,
    )
    caller.require(rules.can_mark_for_board(caller.agent, mine.count()))


@needs_transaction
def insert_document(
    caller: Caller, draft: DocumentDraft, action: Action, now: datetime
) -> Document:
    """Insert a document and its event, notify the Board where it is for it, and write its file.

    Of two documents with one title at one time, the later gets a name that is a µs later.
    """
    row = insert_with_free_id(
        lambda attempt: Document.objects.create(
            organisation_id=caller.organisation_id,
            kind=draft.kind,
            author_id=caller.agent.id,
            folder=draft.folder,
            path=draft.folder + rules.file_name(draft.title, now + timedelta(microseconds=attempt)),
            title=draft.title,
            body=draft.body,
            sha256=hashlib.sha256(draft.body.encode()).hexdigest(),
            report_type=draft.report_type,
            department=draft.department,
            for_board=draft.for_board,
            contract_ref=draft.contract_ref,
            created_at=now,
        ),
        unique="document_path_once",
    )
    record(
        action,
        by=caller,
        at=now,
        subject=f"document:{row.id}",
        details={
            "path": row.path,
            "sha256": row.sha256,
            **({"for_board": True} if row.for_board else {}),
            **({"contract": row.contract_ref} if row.contract_ref else {}),
        },
    )
    if row.for_board:
        note_for_board(caller, row, now)
    write_document_on_commit(row.id)
    return row
