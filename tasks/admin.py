"""The admin of tasks: the list with its filters, and links to board and measures."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    ChoicesDropdownFilter,
    RelatedDropdownFilter,
)
from unfold.enums import ActionVariant

from core.admin.acts import Act, ActingAdmin
from core.admin.base import column
from core.admin.browsing import MomentFilter, RecentFilter, newest
from core.events import text
from core.labels import Text
from orgchart.models import Agent
from tasks.insight.measures_page import measures_page
from tasks.intake.feedback_admin import FeedbackAdmin
from tasks.models import Task
from tasks.pages.board import board_page, move_view
from tasks.pages.task import APPROVE, COMMENT, RELEASE, WITHDRAW, task_context
from tasks.store import number_of

__all__ = ["FeedbackAdmin", "TaskAdmin"]

BY_ORGANISATION = ("organisation", RelatedDropdownFilter)
STATUS_COLOURS = {
    "pending": "info",
    "in_progress": "primary",
    "completed": "success",
    "deleted": "default",
}


class RoleFilter(RecentFilter):
    """By required role."""

    title = _("required role")
    parameter_name = "required_role"


class KindFilter(RecentFilter):
    """By task type."""

    title = _("task type")
    parameter_name = "task_type"


@admin.register(Task)
class TaskAdmin(ActingAdmin):
    """Every task of every organisation, with its dependencies, discussion and history."""

    acts: tuple[Act, ...] = (COMMENT, APPROVE, WITHDRAW, RELEASE)
    change_form_template = "admin/nexus/task.html"

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
    list_filter = (
        BY_ORGANISATION,
        ("status", ChoicesDropdownFilter),
        KindFilter,
        RoleFilter,
        ("owner", AutocompleteSelectFilter),
        ("created_at", MomentFilter),
    )
    list_select_related = ("organisation", "owner")
    ordering = ("-id",)
    search_fields = ("number",)
    search_help_text = _("A task's number, its owner's handle, or words of a recent subject")

    def get_urls(self) -> list[URLPattern]:
        """Add the board, the address that moves a card, and the measures."""
        wrap = self.admin_site.admin_view
        return [
            path("board/", wrap(self.board_view), name="tasks_task_board"),
            path("measures/", wrap(self.measures_view), name="tasks_task_measures"),
            path("<int:task_pk>/move/", wrap(move_view), name="tasks_task_move"),
            *super().get_urls(),
        ]

    def board_view(self, request: HttpRequest) -> HttpResponse:
        """The tasks of one organisation by state."""
        return board_page(self, request)

    def measures_view(self, request: HttpRequest) -> HttpResponse:
        """The measures of one organisation's tasks."""
        return measures_page(self, request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with links to the board and the measures."""
        page = super().changelist_view(request, extra_context)
        if hasattr(page, "context_data"):
            page.context_data["actions_list"] = [
                *(page.context_data.get("actions_list") or []),
                _button(
                    gettext("Measures"), "monitoring", "tasks_task_measures", ActionVariant.DEFAULT
                ),
                _button(
                    pgettext("a board of tasks", "Board"),
                    "view_kanban",
                    "tasks_task_board",
                    ActionVariant.PRIMARY,
                ),
            ]
        answer: HttpResponse = page
        return answer

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The task with its dependencies, discussion and history."""
        row: Task = kwargs.get("obj") or context["original"]
        context |= task_context(request, row, self.subject_of(row))
        context["state_colour"] = STATUS_COLOURS[row.status]
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    def act_buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """All but the comment: its form is on the page itself."""
        buttons = super().act_buttons(request, row)
        return [button for button in buttons if button["title"] != COMMENT.label]

    def subject_of(self, row: Task) -> str:
        """The ledger's name of a task."""
        return f"task:{row.organisation.slug}/{row.number}"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """Rows with owner and organisation, in one query."""
        rows: QuerySet[Task] = super().get_queryset(request)
        return rows.select_related("organisation", "owner")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        """Find by one column, chosen by the term's form, so that an index can serve."""
        term = text(search_term.strip())
        if not term:
            return queryset, False
        number = number_of(term.removeprefix("#"))
        if number is not None:
            return queryset.filter(number=number), False
        agents = list(Agent.objects.filter(handle=term).values_list("id", flat=True))
        if agents:
            return queryset.filter(owner__in=agents), False
        said = gettext(
            "The newest %(number)s tasks were looked through. To see older ones, choose their "
            "time, owner or status."
        )
        return newest(queryset, request, said=said).filter(subject__icontains=term), False

    @column(_("task"))
    def headline(self, task: Task) -> str:
        """Number and subject, shortened for the list."""
        return f"#{task.number} {text(task.subject, 80)}"

    @column(_("status"), label=STATUS_COLOURS)
    def status_label(self, task: Task) -> tuple[str, str]:
        """The state, in colour."""
        return task.status, task.get_status_display()

    @column(_("owner"))
    def owner_handle(self, task: Task) -> str:
        """The owner's handle."""
        return task.owner.handle if task.owner else "–"

    @column(_("requires"))
    def role(self, task: Task) -> str:
        """The role it requires."""
        return task.required_role or gettext("any")

    @column(_("type"))
    def kind(self, task: Task) -> str:
        """The task's type."""
        return task.task_type or "–"

    @column(_("waits for"))
    def waiting(self, task: Task) -> str:
        """How many unfinished tasks it waits for."""
        return str(task.open_blockers) if task.open_blockers else "–"


def _button(title: Text, icon: str, page: str, variant: ActionVariant) -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "variant": variant,
        "attrs": {},
        "path": reverse(f"admin:{page}"),
    }
