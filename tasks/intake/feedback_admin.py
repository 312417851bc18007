"""The admin page of user feedback."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.enums import ActionVariant

from core.admin.base import BrowseAdmin, block, column
from core.admin.browsing import MomentFilter, RecentFilter
from core.events import text
from tasks.intake.feedback_page import TAKE_IN, intake_page
from tasks.models import Feedback

BY_ORGANISATION = ("organisation", RelatedDropdownFilter)


class SourceFilter(RecentFilter):
    """By source."""

    title = _("source")
    parameter_name = "source"


class CategoryFilter(RecentFilter):
    """By category."""

    title = _("category")
    parameter_name = "category"


@admin.register(Feedback)
class FeedbackAdmin(BrowseAdmin):
    """What product users reported, and the task that answers it."""

    list_display = (
        "excerpt",
        "category",
        "rating",
        "source",
        "author",
        "received_at",
        "organisation",
    )
    list_display_links = ("excerpt",)
    list_filter = (BY_ORGANISATION, SourceFilter, CategoryFilter, ("received_at", MomentFilter))
    list_select_related = ("organisation",)
    ordering = ("-id",)
    fields = (
        "organisation",
        "received_at",
        "source",
        "author",
        "category",
        "rating",
        "full_body",
        "external_id",
        "task_link",
    )

    def get_urls(self) -> list[URLPattern]:
        """Add the page on which the Board adds feedback."""
        page = self.admin_site.admin_view(self.intake_view)
        return [path("take-in/", page, name="tasks_feedback_intake"), *super().get_urls()]

    def intake_view(self, request: HttpRequest) -> HttpResponse:
        """The page for one report or a file of reports."""
        return intake_page(self, request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with a link to that page for people who may add feedback."""
        page = super().changelist_view(request, extra_context)
        if request.user.has_perm(TAKE_IN) and hasattr(page, "context_data"):
            button = {
                "title": gettext("Add feedback"),
                "icon": "add",
                "variant": ActionVariant.PRIMARY,
                "attrs": {},
                "path": reverse("admin:tasks_feedback_intake"),
            }
            listed = page.context_data.get("actions_list") or []
            page.context_data["actions_list"] = [*listed, button]
        answer: HttpResponse = page
        return answer

    def subject_of(self, row: Feedback) -> str:
        """The ledger's name of its source."""
        return f"feedback:{row.source}"

    @column(_("feedback"))
    def excerpt(self, feedback: Feedback) -> str:
        """The beginning of the report."""
        return text(feedback.body, 100)

    @column(_("feedback"))
    def full_body(self, feedback: Feedback) -> SafeString:
        """The whole report, escaped."""
        return block(feedback.body)

    @column(_("answered by task"))
    def task_link(self, feedback: Feedback) -> SafeString:
        """A link to the task that answers it."""
        if feedback.task is None:
            return SafeString("–")
        address = reverse("admin:tasks_task_change", args=[feedback.task_id])
        return format_html('<a class="nx-link" href="{}">{}</a>', address, feedback.task)
