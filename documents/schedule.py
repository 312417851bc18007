"""The scheduled job of documents: write files that a crash or a full disk left out."""

from __future__ import annotations

from documents.files import write_missing_files
from toolbox.scheduler import scheduled_job

scheduled_job("files", every=30)(write_missing_files)
