"""The admin of tasks: the list with its filters, and links to board and measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin
from core.admin.base import choice_column, computed_column
from core.admin.bounded import newest
from core.admin.browsing import ListButton, RecentFilter, filter_by
from core.events import text
from core.people import signed_in
from orgchart.people.members import visible_agents
from tasks.insight.measures_page import measures_page
from tasks.intake.feedback_admin import FeedbackAdmin
from tasks.models import Task
from tasks.pages.board import board_page, move_task
from tasks.pages.task import APPROVE, COMMENT, DISCUSSION, RELEASE, WITHDRAW, task_context
from tasks.store import number_of

__all__ = ["FeedbackAdmin", "TaskAdmin"]

STATUS_COLOURS = {
    "pending": "info",
    "in_progress": "primary",
    "completed": "success",
    "deleted": "default",
}


BY_ROLE = filter_by(RecentFilter, "required_role", _("required role"))


BY_TYPE = filter_by(RecentFilter, "task_type", _("task type"))


@admin.register(Task)
class TaskAdmin(ActingAdmin):
    """Every task of every organisation, with its dependencies, discussion and history."""

    subject = "task:{row.organisation.slug}/{row.number}"
    acts: tuple[Act, ...] = (COMMENT, APPROVE, WITHDRAW, RELEASE)
    change_form_template = "admin/nexus/task.html"

    list_buttons = (
        ListButton(
            title=_("Measures"), icon="monitoring", page="tasks_task_measures", is_primary=False
        ),
        ListButton(
            title=pgettext_lazy("a board of tasks", "Board"),
            icon="view_kanban",
            page="tasks_task_board",
        ),
    )
    own_pages = (
        ("board/", "tasks_task_board", board_page),
        ("measures/", "tasks_task_measures", measures_page),
        ("<int:task_pk>/move/", "tasks_task_move", move_task),
    )
    related = ("organisation", "owner")
    seen_with: Mapping[str, str] = dict.fromkeys(
        ("description", "active_form", "metadata", "text_writers"), DISCUSSION
    )
    list_display = (
        "headline",
        "status_label",
        "owner_handle",
        "role",
        "kind",
        "waiting",
        "updated_at",
        "organisation",
    )
    list_display_links = ("headline",)
    list_filter = ("organisation", "status", BY_TYPE, BY_ROLE, "owner", "created_at")
    served = ("status", "owner")
    dated_by = ""  # imported tasks are older than their ids say
    ordering = ("-id",)
    search_fields = ("number",)
    search_help_text = _("A task's number, its owner's handle, or words of a recent subject")

    def row_context(self, request: HttpRequest, row: Task) -> dict[str, Any]:
        """The task with its dependencies, discussion and history."""
        return {
            **task_context(request, row, self.subject_of(row)),
            "state_colour": STATUS_COLOURS[row.status],
        }

    def act_buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """All but the comment: its form is on the page itself."""
        buttons = super().act_buttons(request, row)
        return [button for button in buttons if button["title"] != COMMENT.label]

    def find(self, request: HttpRequest, rows: QuerySet[Task], term: str) -> QuerySet[Task]:
        """Find by one column, chosen by the term's form, so that an index can serve."""
        number = number_of(term.removeprefix("#"))
        if number is not None:
            return rows.filter(number=number)
        agents = visible_agents(signed_in(request), term)
        if agents:
            return rows.filter(owner__in=agents)
        few = newest(rows, request, self)
        return few.filter(subject__icontains=term)

    headline = computed_column(_("task"), lambda task: f"#{task.number} {text(task.subject, 80)}")
    status_label = choice_column("status", _("status"), STATUS_COLOURS)
    owner_handle = computed_column(
        _("owner"), lambda task: task.owner.handle if task.owner else "–"
    )
    role = computed_column(_("requires"), lambda task: task.required_role or gettext("any"))
    kind = computed_column(_("type"), lambda task: task.task_type or "–")
    waiting = computed_column(
        _("waits for"), lambda task: str(task.open_blockers) if task.open_blockers else "–"
    )
