"""The admin page of user feedback."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from core.admin.base import BrowseAdmin, block, column, computed_column, shown_column
from core.admin.browsing import BY_ORGANISATION, ListButton, MomentFilter, RecentFilter, filter_by
from core.events import text
from tasks.intake.feedback_page import TAKE_IN, intake_page
from tasks.models import Feedback

BY_SOURCE = filter_by(RecentFilter, "source", _("source"))


BY_CATEGORY = filter_by(RecentFilter, "category", _("category"))


@admin.register(Feedback)
class FeedbackAdmin(BrowseAdmin):
    """What product users reported, and the task that answers it."""

    subject = "feedback:{row.source}"
    list_buttons = (
        ListButton(
            title=_("Add feedback"),
            icon="add",
            page="tasks_feedback_intake",
            may=lambda request: request.user.has_perm(TAKE_IN),
        ),
    )
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
    list_filter = (BY_ORGANISATION, BY_SOURCE, BY_CATEGORY, ("received_at", MomentFilter))
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

    excerpt = computed_column(_("feedback"), lambda feedback: text(feedback.body, 100))

    full_body = shown_column("body", _("feedback"), block)

    @column(_("answered by task"))
    def task_link(self, feedback: Feedback) -> SafeString:
        """A link to the task that answers it."""
        if feedback.task is None:
            return SafeString("–")
        address = reverse("admin:tasks_task_change", args=[feedback.task_id])
        return format_html('<a class="nx-link" href="{}">{}</a>', address, feedback.task)
