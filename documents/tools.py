"""What agents can do with documents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from core.paging import DEFAULT_LIMIT, MAX_LIMIT
from core.params import (
    Cursor,
    Params,
    RowId,
    Title,
)
from documents import reading, rules, services
from documents.memory import tools as memory_tools  # noqa: F401  declares them
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

Content = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]
ReportTypeName = Literal["status", "completion", "escalation", "cost"]
Department = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
DateRange = Annotated[
    str,
    StringConstraints(min_length=1, max_length=32),
    Field(json_schema_extra={"pattern": rf"^{DAY}(\.\.{DAY})?$"}),
]


class WriteNote(Params):
    """A note or a record of a decision (seed 000 §1.2)."""

    title: Title
    content: Content
    for_board: bool = Field(
        False, description="for the humans of the Board: the top agent's way to escalate"
    )


@tool("write_note", params=WriteNote, group=ToolGroup.DOCUMENT, modes=ANY_MODE)
def write_note(caller: Caller, params: WriteNote, now: datetime) -> dict[str, Any]:
    """Keep a note or a record of a decision in your own folder."""
    return services.write_note(
        caller=caller,
        title=params.title,
        content=params.content,
        for_board=params.for_board,
        now=now,
    )


class WriteReport(Params):
    """A report of one's own work (seed 000 §1.10)."""

    title: Title
    content: Content
    report_type: ReportTypeName = "status"


@tool("write_report", params=WriteReport, group=ToolGroup.DOCUMENT, modes=ANY_MODE)
def write_report(caller: Caller, params: WriteReport, now: datetime) -> dict[str, Any]:
    """File a research report in your reports folder. To hand in a contract, use submit_report."""
    return services.write_report(
        caller=caller,
        title=params.title,
        content=params.content,
        report_type=params.report_type,
        now=now,
    )


class WritePrd(Params):
    """A product requirements document (seed 000 §1.5)."""

    title: Title
    content: Content


@tool("write_prd", params=WritePrd, group=ToolGroup.DOCUMENT, modes=ANY_MODE)
def write_prd(caller: Caller, params: WritePrd, now: datetime) -> dict[str, Any]:
    """File a product requirements document under docs/prd/; a newer one stands beside the older."""
    return services.write_prd(caller=caller, title=params.title, content=params.content, now=now)


class ReadTechReports(Params):
    """A page of technical reports, or one whole."""

    document_id: RowId | None = Field(None, description="to read one whole; alone")
    date_range: DateRange | None = Field(
        None, description="2026-01-01..2026-01-31, both days included, or one day; UTC"
    )
    report_type: ReportTypeName | None = None
    cursor: Cursor | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


class ReadReports(ReadTechReports):
    """A page of reports, or one whole (seed 000 §1.2)."""

    department: Department | None = Field(None, description="tech, hr, product, qa, research, …")


@tool("read_reports", params=ReadReports, group=ToolGroup.DOCUMENT, modes=ANY_MODE, read_only=True)
def read_reports(caller: Caller, params: ReadReports, now: datetime) -> dict[str, Any]:
    """List the reports you may read, newest first, or read one whole by its document_id."""
    if params.document_id is not None:
        return reading.read_report(caller=caller, document_id=params.document_id)
    return reading.read_reports(caller=caller, wanted=_wanted(params, params.department))


@tool(
    "read_tech_reports",
    params=ReadTechReports,
    group=ToolGroup.DOCUMENT,
    modes=ANY_MODE,
    read_only=True,
)
def read_tech_reports(caller: Caller, params: ReadTechReports, now: datetime) -> dict[str, Any]:
    """List the technical reports, newest first, or read one whole by its document_id."""
    if params.document_id is not None:
        return reading.read_report(
            caller=caller, document_id=params.document_id, within=rules.TECH_REPORTS
        )
    return reading.read_reports(caller=caller, wanted=_wanted(params, rules.TECH))


def _wanted(params: ReadTechReports, department: str | None) -> reading.Wanted:
    return reading.Wanted(
        department=department,
        date_range=params.date_range,
        report_type=params.report_type,
        cursor=params.cursor,
        limit=params.limit,
    )
