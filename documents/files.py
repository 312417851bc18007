"""Writing the files of the company tree from rows, which can always be repeated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from django.db.models import Model, QuerySet

from core.database import after_commit, database_now
from documents.models import Document
from documents.root import root
from documents.tree import Missing, SafeTree, Unsafe
from toolbox.scheduler import sweep

log = structlog.get_logger(__name__)
Filed = TypeVar("Filed", bound=Model)

BATCH = 50
GRACE = timedelta(seconds=30)
"""A document younger than this is left to the call that wrote it."""


class FileNotWritten(Exception):
    """The disk refused a file; its document stays due."""


def tree_of(organisation: str) -> SafeTree:
    """The tree of an organisation, by its slug. Raises OSError where its disk is missing."""
    return SafeTree(root(), organisation)


def write_document_on_commit(document_id: int) -> None:
    """Write the document's file after its row is committed; a failure is left to the job."""
    after_commit(_write_document, document_id)


def _write_document(document_id: int) -> None:
    row = Document.objects.select_related("organisation").get(id=document_id)
    if write_file(row.organisation.slug, row.path, row.body):
        Document.objects.filter(id=row.id, filed_at=None).update(filed_at=database_now())


def write_file(organisation: str, path: str, text: str) -> bool:
    """Write a text to a path of the company tree; False, and a log line, if the disk refuses."""
    try:
        tree_of(organisation).write(path, text.encode())
    except (OSError, Unsafe, Missing) as problem:
        log.warning("file_not_written", organisation=organisation, path=path, problem=str(problem))
        return False
    return True


def write_file_on_commit(organisation: str, path: str, text: str) -> None:
    """Write a text to a path of the company tree after this transaction is committed."""
    after_commit(write_file, organisation, path, text)


def write_missing_files(now: datetime) -> int:
    """Write the files of documents that a crash or a full disk left out; returns how many."""

    def write(row: Document) -> bool:
        written = write_file(row.organisation.slug, row.path, row.body)
        if written:
            Document.objects.filter(id=row.id).update(filed_at=now)
        return written

    rows = Document.objects.select_related("organisation")
    return write_due(rows, write, now, author="author_id")


def write_due(
    rows: QuerySet[Filed], write: Callable[[Filed], bool], now: datetime, *, author: str
) -> int:
    """Write the files of rows that have none (`filed_at`), oldest first; returns how many.

    Concurrent runs are harmless. What the disk still refuses is tried at the next run, and so is
    what else its author wrote: an agent can make folders where its files belong.
    """

    def attempt(row: Filed) -> None:
        if not write(row):
            raise FileNotWritten(str(row))

    due = rows.filter(filed_at=None, created_at__lt=now - GRACE)
    due = due.order_by("created_at")  # the order of their indexes
    return sweep(due, attempt, batch=BATCH, by=author)
