"""The scheduled job of documents: write files that a crash or a full disk left out."""

from __future__ import annotations

from datetime import datetime

from documents.files import write_missing_files
from documents.memory.artifacts import write_missing_artifacts
from toolbox.scheduler import scheduled_job


@scheduled_job("files", every=30, waits_for_others=True)
def write_missing(now: datetime) -> int:
    """Write what is missing of documents and artifacts; returns how many files."""
    return write_missing_files(now) + write_missing_artifacts(now)
