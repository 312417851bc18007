"""The tools of documents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from core.params import Handle, Page, Params, RowId, Title
from documents import reports, rules, services
from documents.memory import tools as memory_tools  # noqa: F401  declares them
from documents.models import DocumentKind
from documents.results import ReportPage, WholeReport, WrittenDocument
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

Content = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]
ReportTypeName = Literal["status", "completion", "escalation", "cost"]
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
DateRange = Annotated[
    rules.TimeSpan,
    BeforeValidator(rules.parse_date_range),
    WithJsonSchema({"type": "string", "pattern": rf"^{DAY}(\.\.{DAY})?$"}),
]


class WriteNote(Params):
    """A note or a record of a decision (Spec: files 12)."""

    title: Title
    content: Content
    for_board: bool = Field(
        False, description="for the humans of the Board: the top agent's way to escalate"
    )


@tool("write_note", group=ToolGroup.DOCUMENT, modes=ANY_MODE)
def write_note(caller: Caller, params: WriteNote, now: datetime) -> WrittenDocument:
    """Write a note or a record of a decision in your own folder."""
    return services.write_note(
        caller=caller,
        title=params.title,
        content=params.content,
        for_board=params.for_board,
        now=now,
    )


class WriteReport(Params):
    """A report of one's own work (Spec: files 16)."""

    title: Title
    content: Content
    report_type: ReportTypeName = "status"


@tool("write_report", group=ToolGroup.DOCUMENT, modes=ANY_MODE)
def write_report(caller: Caller, params: WriteReport, now: datetime) -> WrittenDocument:
    """File a research report in your reports folder. To finish a contract, use submit_report."""
    return services.write_report(
        caller=caller,
        title=params.title,
        content=params.content,
        report_type=params.report_type,
        now=now,
    )


class WritePrd(Params):
    """A product requirements document (Spec: files 15)."""

    title: Title
    content: Content


@tool("write_prd", group=ToolGroup.DOCUMENT, modes=ANY_MODE)
def write_prd(caller: Caller, params: WritePrd, now: datetime) -> WrittenDocument:
    """File a product requirements document under docs/prd/; it replaces no older one."""
    return services.write_prd(caller=caller, title=params.title, content=params.content, now=now)


class ReadTechReports(Page):
    """A page of technical reports, or one whole."""

    document_id: RowId | None = Field(None, description="to read one whole")
    date_range: DateRange | None = Field(None, description="2026-01-01..2026-01-31 or one day, UTC")
    report_type: ReportTypeName | None = None


class ReadReports(ReadTechReports):
    """A page of reports, or one whole (Spec: tools 24)."""

    department: Handle | None = Field(None, description="tech, hr, …")
    kind: Literal["report", "note", "prd"] = Field("report", description="note, prd: your own")


@tool("read_reports", group=ToolGroup.DOCUMENT, modes=ANY_MODE, read_only=True)
def read_reports(caller: Caller, params: ReadReports, now: datetime) -> ReportPage | WholeReport:
    """List the reports you may read, newest first, or read one whole by its document_id."""
    if params.document_id is not None:
        return reports.read_report(caller=caller, document_id=params.document_id)
    wanted = _report_filter(params, params.department, DocumentKind(params.kind))
    return reports.read_reports(caller=caller, wanted=wanted)


@tool("read_tech_reports", group=ToolGroup.DOCUMENT, modes=ANY_MODE, read_only=True)
def read_tech_reports(
    caller: Caller, params: ReadTechReports, now: datetime
) -> ReportPage | WholeReport:
    """List the technical reports, newest first, or read one whole by its document_id."""
    if params.document_id is not None:
        return reports.read_report(
            caller=caller, document_id=params.document_id, within=rules.TECH_REPORTS
        )
    return reports.read_reports(caller=caller, wanted=_report_filter(params, rules.TECH))


def _report_filter(
    params: ReadTechReports, department: str | None, kind: DocumentKind = DocumentKind.REPORT
) -> reports.ReportFilter:
    return reports.ReportFilter(
        kind=kind,
        department=department,
        days=params.date_range,
        report_type=params.report_type,
        cursor=params.cursor,
        limit=params.limit,
    )
