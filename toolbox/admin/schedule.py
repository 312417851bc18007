"""The humans' face of the clocks: the schedule, when each was looked at, and what went wrong."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from core.admin.base import BrowseAdmin, column
from toolbox import scheduler
from toolbox.models import ClockRun

LABELS = {"on time": "success", "late": "danger", "failing": "warning", "no more": "default"}


@admin.register(ClockRun)
class ClockRunAdmin(BrowseAdmin):
    """When each sweep last looked, what it did, and what went wrong."""

    list_display = (
        "name",
        "every",
        "standing",
        "last_at",
        "took",
        "last_rows",
        "rows",
        "runs",
        "last_problem",
    )
    search_fields = ("name",)
    ordering = ("name",)
    list_before_template = "admin/nexus/clocks.html"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The schedule, under a word on whether a beat is heard at all."""
        now = scheduler.database_now()
        seen = set(ClockRun.objects.values_list("name", flat=True))
        context = {
            "silence": scheduler.silence(now=now),
            "silent_after": scheduler.SILENT,
            "never": [each for name, each in scheduler.CLOCKS.items() if name not in seen],
            **(extra_context or {}),
        }
        page: HttpResponse = super().changelist_view(request, context)
        return page

    def subject_of(self, row: ClockRun) -> str:
        """Sweeps leave the events of what they did, not of themselves."""
        return ""

    def organisation_id_of(self, row: ClockRun) -> int:
        """Of no organisation."""
        return 0

    @column("every")
    def every(self, row: ClockRun) -> str:
        """Its period, as the schedule has it."""
        found = scheduler.CLOCKS.get(row.name)
        return f"{found.every:g} s" if found else "–"

    @column("standing", label=LABELS)
    def standing(self, row: ClockRun) -> str:
        """Whether it is looked at as often as it asks, in colour."""
        found = scheduler.CLOCKS.get(row.name)
        if found is None:
            return "no more"
        if scheduler.is_late(found, row.last_at, now=scheduler.database_now()):
            return "late"
        return "failing" if row.last_problem else "on time"

    @column("took")
    def took(self, row: ClockRun) -> str:
        """How long the last look took."""
        return f"{row.last_seconds * 1000:,.0f} ms"
