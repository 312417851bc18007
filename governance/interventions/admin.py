"""The table of interventions in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter

from core.admin.base import BrowseAdmin
from core.admin.browsing import MomentFilter
from governance.interventions.models import Intervention


@admin.register(Intervention)
class InterventionAdmin(BrowseAdmin):
    """Every intervention of people, in one table."""

    list_display = (
        "timestamp",
        "operator",
        "operator_role",
        "trigger_condition",
        "action_taken",
        "subject",
        "reason",
    )
    list_filter = (
        ("organisation", RelatedDropdownFilter),
        ("operator_role", ChoicesDropdownFilter),
        ("timestamp", MomentFilter),
    )
    search_fields = ("=subject", "=operator")
    search_help_text = _("A subject (case:CASE-…) or a person")
    ordering = ("-id",)

    def subject_of(self, row: Intervention) -> str:
        """Its events are those of what was intervened in."""
        return str(row.subject)
