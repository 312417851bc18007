"""The admin of scheduled jobs: the period of each, its last run and what failed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.base import BrowseAdmin, column, computed_column
from core.admin.browsing import INSTALLATION
from core.admin.units import duration
from core.database import database_now
from toolbox import scheduler
from toolbox.models import JobRun
from toolbox.waiting import stopped_scheduler

LABELS = {"on time": "success", "late": "danger", "failing": "warning", "removed": "default"}


@admin.register(JobRun)
class JobRunAdmin(BrowseAdmin):
    """When each scheduled job last ran, what it did, and what failed."""

    subject = ""
    list_display = (
        "name",
        "every",
        "status",
        "last_at",
        "took",
        "last_rows",
        "rows",
        "runs",
        "last_problem",
    )
    search_fields = ("name",)
    ordering = ("name",)
    list_before_template = "admin/nexus/scheduled_jobs.html"
    organisation_path = INSTALLATION

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """A warning if the scheduler is not running or a job never ran."""
        now = database_now()
        seen = set(JobRun.objects.values_list("name", flat=True))
        return {
            "problem": stopped_scheduler(now=now),
            "never": [each for name, each in scheduler.JOBS.items() if name not in seen],
        }

    @column(_("every"))
    def every(self, row: JobRun) -> str:
        """The period."""
        found = scheduler.JOBS.get(row.name)
        return duration(round(found.every)) if found else "–"

    @column(_("status"), label=LABELS)
    def status(self, row: JobRun) -> tuple[str, str]:
        """Whether it runs as often as it should, in colour."""
        found = scheduler.JOBS.get(row.name)
        if found is None:
            return "removed", gettext("removed")
        if scheduler.is_late(found, row.last_at, now=database_now()):
            return "late", gettext("late")
        if row.last_problem:
            return "failing", gettext("failing")
        return "on time", gettext("on time")

    took = computed_column(
        _("took"),
        lambda row: gettext("%(count)s ms") % {"count": f"{row.last_seconds * 1000:,.0f}"},
    )
