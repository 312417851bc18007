"""The table of interventions in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from core.admin.base import BrowseAdmin, computed_column
from core.admin.browsing import WordsFilter, filter_by
from core.admin.happened import deed_shown, worded
from governance.interventions.models import Intervention
from governance.interventions.vocabulary import OFFICE_OF_GROUP

OFFICES = {str(office): group.value for group, office in OFFICE_OF_GROUP.items()}
"""People know the offices by the groups that hold them."""


BY_OFFICE = filter_by(WordsFilter, "operator_role", _("office"), words=OFFICES)


@admin.register(Intervention)
class InterventionAdmin(BrowseAdmin):
    """Every intervention of people, in one table."""

    subject = "{row.subject}"
    list_display = (
        "timestamp",
        "operator",
        "office",
        "trigger_condition",
        "done",
        "subject",
        "reason",
    )
    fields = (
        "organisation",
        "timestamp",
        "operator",
        "office",
        "trigger_condition",
        "done",
        "subject",
        "case",
        "reason",
        "details",
        "confirmed",
    )
    in_other_words = ("operator_role", "action_taken")
    list_filter = ("organisation", BY_OFFICE, "timestamp")
    dated_by = "timestamp"
    search_fields = ("=subject", "=operator")
    search_help_text = _("A subject (case:CASE-…) or a person")
    ordering = ("-id",)

    office = computed_column(_("office"), lambda row: worded(OFFICES, row.operator_role))

    done = computed_column(_("what the person did"), lambda row: deed_shown(row.action_taken))
