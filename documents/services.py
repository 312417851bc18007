"""Writing documents: a row with its event in one transaction, a file after it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from core.actions import Action
from core.decision import require
from documents import rules
from documents.board import tell_board
from documents.filing import file_soon
from documents.models import Document, Kind, ReportType
from ledger.services import record
from orgchart.policy.compiled import Agent
from toolbox.caller import Caller

ATTEMPTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A document as it was written, before it has its name."""

    kind: Kind
    folder: str
    title: str
    body: str
    report_type: str = ""
    department: str = ""
    for_board: bool = False
    contract_ref: str = ""


def write_note(
    *, caller: Caller, title: str, content: str, for_board: bool, now: datetime
) -> dict[str, Any]:
    """Keep a note of the caller (seed 000 §1.2); the top agent may mark one for the Board (§4.4).

    Raises Denied LEVEL_DENIED for anybody else's mark, SCOPE_DENIED outside the write scope.
    """
    if for_board:
        require(rules.can_mark_for_board(caller.agent))
    draft = Draft(
        kind=Kind.NOTE,
        folder=rules.notes_of(caller.agent),
        title=title,
        body=content,
        for_board=for_board,
    )
    return shown(_written(caller, draft, now))


def write_report(
    *, caller: Caller, title: str, content: str, report_type: str, now: datetime
) -> dict[str, Any]:
    """File a report in the caller's own folder below reports/ (seed 000 §1.10).

    Raises Denied SCOPE_DENIED where its role gives it none.
    """
    return shown(_written(caller, _report(caller, title, content, report_type), now))


def write_prd(*, caller: Caller, title: str, content: str, now: datetime) -> dict[str, Any]:
    """File a product requirements document (seed 000 §1.5). Raises Denied SCOPE_DENIED."""
    draft = Draft(kind=Kind.PRD, folder=rules.PRDS, title=title, body=content)
    return shown(_written(caller, draft, now))


def file_report(
    *,
    caller: Caller,
    title: str,
    body: str,
    report_type: str,
    reader: Agent | None,
    contract_ref: str,
    now: datetime,
) -> Document:
    """File a report that a higher room has accepted, in the department of who reads it.

    `reader` None is the Board, which reads the author's own. The folder is the system's choice, not
    the author's, so its write scope is not asked. In the transaction of the report.
    """
    draft = _report(caller, title, body, report_type, reader=reader, contract_ref=contract_ref)
    with transaction.atomic():
        return _kept(caller, draft, Action.REPORT_FILED, now)


def shown(row: Document) -> dict[str, Any]:
    """A document as its author sees it."""
    return {
        "document_id": str(row.id),
        "kind": row.kind,
        "path": row.path,
        "title": row.title,
        "sha256": row.sha256,
        "created_at": row.created_at,
        **({"for_board": True} if row.for_board else {}),
    }


def _report(
    caller: Caller,
    title: str,
    body: str,
    report_type: str,
    *,
    reader: Agent | None = None,
    contract_ref: str = "",
) -> Draft:
    department = rules.department_of(reader or caller.agent, caller.policy)
    return Draft(
        kind=Kind.REPORT,
        folder=rules.reports_of(department),
        title=title,
        body=body,
        report_type=ReportType(report_type).value,
        department=department,
        contract_ref=contract_ref,
    )


def _written(caller: Caller, draft: Draft, now: datetime) -> Document:
    path = draft.folder + rules.file_name(draft.title, now)
    require(rules.can_write(path, caller.agent, caller.policy))
    with transaction.atomic():
        return _kept(caller, draft, Action(f"{draft.kind}.written"), now)


def _kept(caller: Caller, draft: Draft, action: Action, now: datetime) -> Document:
    row = _inserted(caller, draft, now)
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
        tell_board(caller, row, now)
    file_soon(row.id)
    return row


def _inserted(caller: Caller, draft: Draft, now: datetime) -> Document:
    """Insert under a free name: of two with one title at one time, the later is a µs later."""
    for attempt in range(ATTEMPTS):
        named = rules.file_name(draft.title, now + timedelta(microseconds=attempt))
        try:
            with transaction.atomic():
                return Document.objects.create(
                    organisation_id=caller.organisation_id,
                    kind=draft.kind,
                    author_id=caller.agent.id,
                    folder=draft.folder,
                    path=draft.folder + named,
                    title=draft.title,
                    body=draft.body,
                    sha256=hashlib.sha256(draft.body.encode()).hexdigest(),
                    report_type=draft.report_type,
                    department=draft.department,
                    for_board=draft.for_board,
                    contract_ref=draft.contract_ref,
                    created_at=now,
                )
        except IntegrityError as clash:
            if "document_path_once" not in str(clash):
                raise
    raise RuntimeError(f"no free name for a document in {ATTEMPTS} attempts")
