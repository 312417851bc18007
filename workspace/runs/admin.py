"""The humans' face of runs: what agents ran in the sandbox, with its log."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from core.admin.base import BrowseAdmin, block, column, listed
from core.admin.browsing import MomentFilter
from workspace.models import Run


@admin.register(Run)
class RunAdmin(BrowseAdmin):
    """Every run of tests or of the linter, and how it ended."""

    list_display = ("id", "agent", "tool", "asked_at", "ended_at", "outcome")
    list_select_related = ("agent",)
    list_filter = (("asked_at", MomentFilter),)
    search_fields = ("=id", "=commit", "=agent__handle")
    fields = (
        "id", "agent", "tool", "path_list", "commit", "asked_at", "started_at", "ended_at",
        "outcome", "output_sha256", "log",
    )  # fmt: skip

    def subject_of(self, row: Run) -> str:
        """How the ledger names it."""
        return f"run:{row.id}"

    @column("outcome")
    def outcome(self, row: Run) -> str:
        """How it ended, or that it has not."""
        if row.stopped_for:
            return f"stopped: {row.stopped_for}"
        if row.timed_out:
            return "stopped: it took too long"
        if row.ended_at is None:
            return "running" if row.started_at else "waiting"
        return "killed" if row.exit_status is None else f"exit status {row.exit_status}"

    @column("paths")
    def path_list(self, row: Run) -> SafeString:
        """What was run."""
        return listed(row.paths)

    @column("log")
    def log(self, row: Run) -> SafeString:
        """What the program wrote, escaped."""
        return block(row.output)
