"""From rows to files: the company tree as a projection that can always be made again."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from documents.models import Document
from documents.tree import Missing, Tree, Unsafe
from toolbox.scheduler import sweep

log = structlog.get_logger(__name__)

BATCH = 50
GRACE = timedelta(seconds=30)
"""A document younger than this is left to the call that wrote it."""


class NotWritten(Exception):
    """The disk refused a file; its document stays due."""


def tree_of(organisation: str) -> Tree:
    """The company tree of an organisation, by its slug."""
    return Tree(Path(settings.NEXUS_COMPANY_ROOT), organisation)


def file_soon(document_id: int) -> None:
    """Write the document's file once its row is committed; a failure is left to the sweep."""
    transaction.on_commit(partial(_file_one, document_id), robust=True)


def _file_one(document_id: int) -> None:
    row = Document.objects.select_related("organisation").get(id=document_id)
    if project(row.organisation.slug, row.path, row.body):
        Document.objects.filter(id=row.id, filed_at=None).update(filed_at=timezone.now())


def project(organisation: str, path: str, text: str) -> bool:
    """Put a text at a path of the company tree; False, and a log line, when the disk refuses."""
    try:
        tree_of(organisation).write(path, text.encode())
    except (OSError, Unsafe, Missing) as problem:
        log.warning("file_not_written", organisation=organisation, path=path, problem=str(problem))
        return False
    return True


def project_soon(organisation: str, path: str, text: str) -> None:
    """Put a text at a path of the company tree once this transaction is committed."""
    transaction.on_commit(partial(project, organisation, path, text), robust=True)


def file_missing(*, now: datetime) -> int:
    """Write the files that a crash or a full disk left out; returns how many.

    Several at once are harmless; what the disk still refuses is tried at the next look.
    """
    due = Document.objects.select_related("organisation").filter(
        filed_at=None, created_at__lt=now - GRACE
    )

    def act(row: Document) -> None:
        if not project(row.organisation.slug, row.path, row.body):
            raise NotWritten(row.path)
        Document.objects.filter(id=row.id).update(filed_at=now)

    return sweep(due, act, batch=BATCH)
