"""What is due in the company tree: files that a crash or a full disk left out."""

from __future__ import annotations

from datetime import datetime

from documents.filing import file_missing
from toolbox.scheduler import clock


@clock("files", every=30)
def files(now: datetime) -> int:
    """Write the files of documents that have none yet."""
    return file_missing(now=now)
