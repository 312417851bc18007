"""The admin page of user feedback."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from core.admin.base import BrowseAdmin, block, computed_column, link, shown_column
from core.admin.browsing import ListButton, RecentFilter, filter_by
from core.events import text
from core.waiting import page_of
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
    own_pages = (("take-in/", "tasks_feedback_intake", intake_page),)
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
    list_filter = ("organisation", BY_SOURCE, BY_CATEGORY, "received_at")
    dated_by = "received_at"
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

    excerpt = computed_column(_("feedback"), lambda feedback: text(feedback.body, 100))

    full_body = shown_column("body", _("feedback"), block)

    task_link = shown_column(
        "task", _("answered by task"), lambda task: link(page_of(task), task) if task else "–"
    )
