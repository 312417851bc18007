"""Reading documents: pages of the reports that the caller may read, newest first; or one whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from core import paging
from core.decision import Allow, Code, refuse
from documents import rules
from documents.models import NAMES_CONTRACT, Document, DocumentKind, ReportType
from documents.results import ListedReport, ReportPage, WholeReport
from toolbox.caller import Caller

EXCERPT = 500

COLUMNS = (
    "d.id, d.kind, d.path, d.title, d.author_id, d.department, d.report_type, d.contract_ref, "
    f"d.sha256, d.created_at, left(d.body, {EXCERPT}) AS excerpt"
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
    """Which documents to list; None means any. Notes and PRDs are the caller's own."""

    kind: DocumentKind = DocumentKind.REPORT
    department: str | None = None
    days: rules.TimeSpan | None = None
    report_type: str | None = None
    cursor: str | None = None
    limit: int = paging.DEFAULT_LIMIT


@cache
def page_query(*, typed: bool, ranged: bool, paged: bool, filed: bool = False) -> str:
    """One page over several folders and authors: the newest of each by its index, then of these.

    The authors' part leaves the organisation to their own rows: with it PostgreSQL may take the
    index of the organisation, and look through all documents for the few, or none, of one author.
    """
    where = ["d.kind = %(kind)s"]
    if filed:
        where.append("d.department = %(department)s")
    if typed:
        where.append("d.report_type = %(report_type)s")
    if ranged:
        where.append("d.created_at >= %(begins)s AND d.created_at < %(ends)s")
    if paged:
        where.append("(d.created_at, d.id) < (%(before)s, %(before_id)s)")
    newest = "ORDER BY d.created_at DESC, d.id DESC LIMIT %(limit)s + 1"
    chosen = f"SELECT {COLUMNS} FROM documents_document d WHERE {' AND '.join(where)}"
    return f"""
    SELECT page.* FROM (
        SELECT f.* FROM unnest(%(folders)s::text[]) AS one (folder) CROSS JOIN LATERAL (
            {chosen} AND d.organisation_id = %(organisation)s AND d.folder = one.folder
            {newest}) AS f
        UNION
        SELECT a.* FROM orgchart_agent one CROSS JOIN LATERAL (
            {chosen} AND d.author_id = one.id {newest}) AS a
        WHERE one.id = ANY(%(authors)s::bigint[]) AND one.organisation_id = %(organisation)s
    ) AS page ORDER BY page.created_at DESC, page.id DESC LIMIT %(limit)s + 1
    """


def read_reports(*, caller: Caller, wanted: ReportFilter) -> ReportPage:
    """One page of the reports that the caller may read, newest first (Spec: tools 24).

    These are the reports in its read scope, its own, and those of the agents below it.

    Spec: files 14. Raises Denied SCOPE_DENIED for a department of which it reads nothing,
    INVALID_PARAMS for an unknown cursor.
    """
    before, before_id = _place(wanted.cursor)
    folders, authors = _sources(caller, wanted)
    values: dict[str, Any] = {
        "organisation": caller.organisation_id,
        "kind": wanted.kind,
        "folders": folders,
        "authors": authors,
        "department": wanted.department,
        "report_type": wanted.report_type,
        "begins": wanted.days and wanted.days.begins,
        "ends": wanted.days and wanted.days.ends,
        "before": before,
        "before_id": before_id,
        "limit": wanted.limit,
    }
    text = page_query(
        typed=wanted.report_type is not None,
        ranged=wanted.days is not None,
        paged=before is not None,
        filed=wanted.department is not None and wanted.kind is DocumentKind.REPORT,
    )
    with connection.cursor() as db:
        db.execute(text, values)
        rows = db.fetchall()
    if not rows and wanted.kind is DocumentKind.REPORT and wanted.department is not None:
        _require_department(caller, wanted.department)
    page, more = paging.cut(rows, wanted.limit, lambda row: f"{row[9].isoformat()} {row[0]}")
    return {
        "reports": [_listed(caller, row) for row in page if _readable(caller, row[2], row[4])],
        "next_cursor": more,
    }


def read_report(*, caller: Caller, document_id: str, within: str = "") -> WholeReport:
    """One report that the caller may read, or a note or PRD of its own, whole.

    `within` is the only folder to read from. Raises Denied NOT_FOUND, also for one that the caller
    may not read.
    """
    row = (
        Document.objects.select_related("author")
        .filter(
            id=int(document_id),
            organisation_id=caller.organisation_id,
            path__startswith=within,
        )
        .first()
    )
    if row is None or not (
        row.author_id == caller.agent.id
        or (row.kind == DocumentKind.REPORT and _readable(caller, row.path, row.author_id))
    ):
        raise refuse(
            Code.NOT_FOUND,
            f"there is no report {document_id} in your read scope",
            "list the reports without document_id",
            rule="a report is read in the reader's scope, by its author and by those above",
        )
    return {
        "document_id": str(row.id),
        "kind": DocumentKind(row.kind),
        "path": row.path,
        "title": row.title,
        "author": row.author.handle,
        "department": row.department or None,
        "report_type": ReportType(row.report_type) if row.report_type else None,
        "contract_ref": row.contract_ref or None,
        "sha256": row.sha256,
        "created_at": row.created_at,
        "body": row.body,
    }


def _require_department(caller: Caller, department: str) -> None:
    """Raises Denied SCOPE_DENIED for a department of which the caller reads nothing."""
    if not rules.has_members_below(caller.agent, department, caller.policy):
        folder = rules.reports_folder(department)
        caller.require(rules.can_read(folder, caller.agent, caller.policy))


def _sources(caller: Caller, wanted: ReportFilter) -> tuple[list[str], list[int]]:
    """The folders and the authors to read: of notes and PRDs, the caller; of a department's
    reports, its folder; and all below the caller, for a report stays where it was filed.
    """
    if wanted.kind is not DocumentKind.REPORT:
        return [], [caller.agent.id]
    authors = rules.authors_below(caller.agent, caller.policy)
    if wanted.department is not None:
        folder = rules.reports_folder(wanted.department)
        return [folder] if _in_scope(caller, folder) else [], authors
    with connection.cursor() as db:
        db.execute(FOLDERS, {"organisation": caller.organisation_id})
        folders = [folder for (folder,) in db.fetchall() if _in_scope(caller, folder)]
    return folders, authors


def _in_scope(caller: Caller, path: str) -> bool:
    return isinstance(rules.can_read(path, caller.agent, caller.policy), Allow)


def _readable(caller: Caller, path: str, author_id: int) -> bool:
    author = caller.policy.by_id.get(author_id)
    return rules.may_read_report(path, author, caller.agent, caller.policy)


def has_denied_report(caller: Caller, contract_ref: str) -> bool:
    """Whether a report on a contract is filed where the caller's role is denied to read."""
    rows = Document.objects.filter(
        NAMES_CONTRACT,
        organisation_id=caller.organisation_id,
        kind=DocumentKind.REPORT,
        contract_ref=contract_ref,
    )
    folders = rows.order_by().values_list("folder", flat=True).distinct()
    return any(rules.is_denied_to(each, caller.agent, caller.policy) for each in folders)


def _listed(caller: Caller, row: tuple[Any, ...]) -> ListedReport:
    number, kind, path, title, author_id, department, about, contract_ref, sha256, at, excerpt = row
    author = caller.policy.by_id.get(author_id)
    return {
        "document_id": str(number),
        "kind": DocumentKind(kind),
        "path": path,
        "title": title,
        "author": author.handle if author else "",
        "department": department or None,
        "report_type": ReportType(about) if about else None,
        "contract_ref": contract_ref or None,
        "sha256": sha256,
        "created_at": at,
        "excerpt": excerpt,
    }


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
