"""What the tools of documents return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from documents.models import DocumentKind, ReportType

NextCursor = Annotated[str | None, Field(description="cursor of the next page; null: the last one")]


@wire_result
class WrittenDocument(TypedDict):
    """A document that the caller wrote."""

    document_id: str
    kind: DocumentKind
    path: str
    title: str
    sha256: str
    created_at: datetime
    for_board: NotRequired[Annotated[bool, Field(description="only for a note to the Board")]]


@wire_result
class _Report(TypedDict):
    """What is said of a report, or of a note or PRD of the caller, in a list and alone."""

    document_id: str
    kind: DocumentKind
    path: str
    title: str
    author: str
    department: str | None
    report_type: ReportType | None
    contract_ref: str | None
    sha256: str
    created_at: datetime


@wire_result
class ListedReport(_Report):
    """A report, or a note or PRD of the caller, in a list, with how it begins."""

    excerpt: str


@wire_result
class ReportPage(TypedDict):
    """A page of reports, newest first."""

    reports: list[ListedReport]
    next_cursor: NextCursor


@wire_result
class WholeReport(_Report):
    """One report, or a note or PRD of the caller, with its body."""

    body: str
