"""Reading reports: pages of those in the caller's read scope, newest first; or one report whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from core import paging
from core.decision import Allow, Code, Denied, Deny, refuse
from documents import rules
from documents.models import Document, DocumentKind, ReportType
from documents.results import ListedReport, ReportPage, WholeReport
from toolbox.caller import Caller

EXCERPT = 500

COLUMNS = (
    "d.id, d.path, d.title, d.author_id, d.department, d.report_type, d.contract_ref, d.sha256, "
    f"d.created_at, left(d.body, {EXCERPT}) AS excerpt"
)

FOLDERS = """
WITH RECURSIVE seen AS (
    (SELECT folder FROM documents_document
     WHERE organisation_id = %(organisation)s AND kind = 'report' ORDER BY folder LIMIT 1)
    UNION ALL
    SELECT (SELECT folder FROM documents_document
            WHERE organisation_id = %(organisation)s AND kind = 'report' AND folder > seen.folder
            ORDER BY folder LIMIT 1)
    FROM seen WHERE seen.folder IS NOT NULL
)
SELECT folder FROM seen WHERE folder IS NOT NULL
"""
"""Every folder that holds a report, with one index lookup for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilter:
    """Which reports to list; None means any."""

    department: str | None = None
    date_range: str | None = None
    report_type: str | None = None
    cursor: str | None = None
    limit: int = paging.DEFAULT_LIMIT


@cache
def page_query(*, typed: bool, ranged: bool, paged: bool) -> str:
    """One page over several folders: the newest of each by its index, then the newest of these."""
    where = ["d.organisation_id = %(organisation)s", "d.kind = 'report'", "d.folder = f.folder"]
    if typed:
        where.append("d.report_type = %(report_type)s")
    if ranged:
        where.append("d.created_at >= %(begins)s AND d.created_at < %(ends)s")
    if paged:
        where.append("(d.created_at, d.id) < (%(before)s, %(before_id)s)")
    return f"""
    SELECT page.* FROM unnest(%(folders)s::text[]) AS f (folder) CROSS JOIN LATERAL (
        SELECT {COLUMNS} FROM documents_document d WHERE {" AND ".join(where)}
        ORDER BY d.created_at DESC, d.id DESC LIMIT %(limit)s + 1
    ) AS page ORDER BY page.created_at DESC, page.id DESC LIMIT %(limit)s + 1
    """


def read_reports(*, caller: Caller, wanted: ReportFilter) -> ReportPage:
    """One page of the reports that the caller's read scope holds, newest first (seed 000 §1.2).

    Raises Denied SCOPE_DENIED for a department outside its scope, INVALID_PARAMS for a range that
    is malformed or an unknown cursor.
    """
    span = rules.parse_date_range(wanted.date_range)
    if isinstance(span, Deny):
        raise Denied(span)
    before, before_id = _place(wanted.cursor)
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "folders": _folders(caller, wanted.department),
        "report_type": wanted.report_type,
        "begins": span and span.begins,
        "ends": span and span.ends,
        "before": before,
        "before_id": before_id,
        "limit": wanted.limit,
    }
    text = page_query(
        typed=wanted.report_type is not None, ranged=span is not None, paged=before is not None
    )
    with connection.cursor() as db:
        db.execute(text, values)
        rows = db.fetchall()
    page, more = rows[: wanted.limit], len(rows) > wanted.limit
    return {
        "reports": [_listed(caller, row) for row in page if _readable(caller, row[1])],
        "next_cursor": _cursor(page[-1][0], page[-1][8]) if more else None,
    }


def read_report(*, caller: Caller, document_id: str, within: str = rules.REPORTS) -> WholeReport:
    """One report whole. Raises Denied NOT_FOUND, also for one outside the caller's scope."""
    row = (
        Document.objects.select_related("author")
        .filter(
            id=int(document_id),
            organisation_id=caller.organisation_id,
            kind=DocumentKind.REPORT,
            path__startswith=within,
        )
        .first()
    )
    if row is None or not _readable(caller, row.path):
        raise refuse(
            Code.NOT_FOUND,
            f"there is no report {document_id} in your read scope",
            "list the reports without document_id",
            rule="a report is read where the reader's scope holds it",
        )
    return {
        "document_id": str(row.id),
        "path": row.path,
        "title": row.title,
        "author": row.author.handle,
        "department": row.department,
        "report_type": ReportType(row.report_type),
        "contract_ref": row.contract_ref or None,
        "sha256": row.sha256,
        "created_at": row.created_at,
        "body": row.body,
    }


def _folders(caller: Caller, department: str | None) -> list[str]:
    """The folders to read: the department's, if the caller may read it, else all that it may."""
    if department is not None:
        folder = rules.reports_folder(department)
        caller.require(rules.can_read(folder, caller.agent, caller.policy))
        return [folder]
    with connection.cursor() as db:
        db.execute(FOLDERS, {"organisation": caller.organisation_id})
        return [folder for (folder,) in db.fetchall() if _readable(caller, folder)]


def _readable(caller: Caller, path: str) -> bool:
    return isinstance(rules.can_read(path, caller.agent, caller.policy), Allow)


def _listed(caller: Caller, row: tuple[Any, ...]) -> ListedReport:
    number, path, title, author_id, department, kind, contract_ref, sha256, at, excerpt = row
    author = caller.policy.by_id.get(author_id)
    return {
        "document_id": str(number),
        "path": path,
        "title": title,
        "author": author.handle if author else "",
        "department": department,
        "report_type": ReportType(kind),
        "contract_ref": contract_ref or None,
        "sha256": sha256,
        "created_at": at,
        "excerpt": excerpt,
    }


def _cursor(number: int, at: datetime) -> str:
    return paging.encode(f"{at.isoformat()} {number}")


def _place(cursor: str | None) -> tuple[datetime | None, int | None]:
    place = paging.decode(cursor)
    if place is None:
        return None, None
    stamp, _, number = place.partition(" ")
    try:
        at, row_id = datetime.fromisoformat(stamp), int(number)
    except ValueError:
        at, row_id = datetime.min, -1  # noqa: DTZ901  a time without zone: refused below
    if at.tzinfo is None or not 0 <= row_id < 2**63:
        raise paging.unknown_cursor()
    return at, row_id
