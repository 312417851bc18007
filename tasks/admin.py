"""The humans' face of tasks: the list with its filters, one task whole, what users reported."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    ChoicesDropdownFilter,
    RelatedDropdownFilter,
)
from unfold.enums import ActionVariant

from ledger.browsing import MomentFilter, RecentFilter
from ledger.events import text
from orgchart.admin_base import BrowseAdmin, block, column
from orgchart.models import Agent
from tasks.admin_board import board_page, move_view
from tasks.discussion import comments_of
from tasks.models import Feedback, Task
from tasks.rows import number_of

BY_ORGANISATION = ("organisation", RelatedDropdownFilter)
STATUS_COLOURS = {
    "pending": "info",
    "in_progress": "primary",
    "completed": "success",
    "deleted": "default",
}
LOOKED_THROUGH = 20_000
"""Words are looked for in the subjects of that many of the newest tasks."""


class RoleFilter(RecentFilter):
    """By required role."""

    title = "required role"
    parameter_name = "required_role"


@admin.register(Task)
class TaskAdmin(BrowseAdmin):
    """Every task of every organisation, with its neighbours, its discussion and its history."""

    list_display = (
        "headline",
        "status_label",
        "owner_handle",
        "role",
        "kind",
        "waiting",
        "version",
        "updated_at",
        "organisation",
    )
    list_display_links = ("headline",)
    list_filter = (
        BY_ORGANISATION,
        ("status", ChoicesDropdownFilter),
        ("task_type", ChoicesDropdownFilter),
        RoleFilter,
        ("owner", AutocompleteSelectFilter),
        ("updated_at", MomentFilter),
    )
    list_select_related = ("organisation", "owner")
    ordering = ("-id",)
    search_fields = ("number",)
    search_help_text = "A task's number, its owner's handle, or words of a recent subject"
    fields = (
        "headline",
        "organisation",
        "status_label",
        "owner_handle",
        "role",
        "kind",
        "full_description",
        "blocked_by_list",
        "blocks_list",
        "version",
        "rank",
        "created_by",
        "created_at",
        "updated_at",
        "claimed_at",
        "started_at",
        "completed_at",
        "lease_due_at",
        "approved_by",
        "approved_at",
        "metadata",
        "discussion",
    )

    def get_urls(self) -> list[URLPattern]:
        """And the board, with the address that its cards are moved by."""
        wrap = self.admin_site.admin_view
        return [
            path("board/", wrap(self.board_view), name="tasks_task_board"),
            path("<int:task_pk>/move/", wrap(move_view), name="tasks_task_move"),
            *super().get_urls(),
        ]

    def board_view(self, request: HttpRequest) -> HttpResponse:
        """The tasks of one organisation by state."""
        return board_page(self, request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with the way to the board."""
        page = super().changelist_view(request, extra_context)
        if hasattr(page, "context_data"):
            button = {
                "title": "Board",
                "icon": "view_kanban",
                "variant": ActionVariant.PRIMARY,
                "attrs": {},
                "path": reverse("admin:tasks_task_board"),
            }
            page.context_data["actions_list"] = [
                *(page.context_data.get("actions_list") or []),
                button,
            ]
        answer: HttpResponse = page
        return answer

    def subject_of(self, row: Task) -> str:
        """How the ledger names a task."""
        return f"task:{row.organisation.slug}/{row.number}"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """With owner and organisation, in one query."""
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
        newest = Task.objects.order_by("-id").values_list("id", flat=True)
        edge = next(iter(newest[LOOKED_THROUGH : LOOKED_THROUGH + 1]), 0)
        return queryset.filter(id__gt=edge, subject__icontains=term), False

    @column("task")
    def headline(self, task: Task) -> str:
        """Number and subject, cut where a list would break."""
        return f"#{task.number} {text(task.subject, 80)}"

    @column("status", label=STATUS_COLOURS)
    def status_label(self, task: Task) -> str:
        """The state, in colour."""
        return task.status

    @column("owner")
    def owner_handle(self, task: Task) -> str:
        """Who has claimed it."""
        return task.owner.handle if task.owner else "–"

    @column("required role")
    def role(self, task: Task) -> str:
        """The role it requires."""
        return task.required_role or "any"

    @column("type")
    def kind(self, task: Task) -> str:
        """What kind of work it is."""
        return task.task_type or "–"

    @column("waits for")
    def waiting(self, task: Task) -> str:
        """How many unfinished tasks hold it."""
        return str(task.open_blockers) if task.open_blockers else "–"

    @column("description")
    def full_description(self, task: Task) -> SafeString:
        """The whole text, escaped."""
        return block(task.description)

    @column("blocked by")
    def blocked_by_list(self, task: Task) -> SafeString:
        """Links to what it waits for."""
        return links(Task.objects.filter(blocks__blocked=task))

    @column("blocks")
    def blocks_list(self, task: Task) -> SafeString:
        """Links to what waits for it."""
        return links(Task.objects.filter(blocked_by__blocker=task))

    @column("discussion")
    def discussion(self, task: Task) -> SafeString:
        """The last comments, oldest first."""
        said = [
            (f"{one['createdAt']:%Y-%m-%d %H:%M} UTC", one["author"], one["body"])
            for one in comments_of(task.id)
        ]
        if not said:
            return SafeString("–")
        row = '<p class="nx-small nx-quiet">{} · {}</p><div class="nx-block">{}</div>'
        return format_html_join("", row, said)


def links(tasks: QuerySet[Task]) -> SafeString:
    """Tasks by number, each a link to its page."""
    found = [
        (reverse("admin:tasks_task_change", args=[task.id]), str(task), task.status)
        for task in tasks.order_by("number")[:200]
    ]
    if not found:
        return SafeString("–")
    inner = format_html_join("", '<li><a class="nx-link" href="{}">{}</a> ({})</li>', found)
    return format_html('<ul class="nx-list">{}</ul>', inner)


class SourceFilter(RecentFilter):
    """By where it came from."""

    title = "source"
    parameter_name = "source"


class CategoryFilter(RecentFilter):
    """By category."""

    title = "category"
    parameter_name = "category"


@admin.register(Feedback)
class FeedbackAdmin(BrowseAdmin):
    """What users of the product reported, and the task that came of it."""

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

    def subject_of(self, row: Feedback) -> str:
        """How the ledger names where it came from."""
        return f"feedback:{row.source}"

    @column("feedback")
    def excerpt(self, feedback: Feedback) -> str:
        """The beginning of the report."""
        return text(feedback.body, 100)

    @column("feedback")
    def full_body(self, feedback: Feedback) -> SafeString:
        """The whole report, escaped."""
        return block(feedback.body)

    @column("became task")
    def task_link(self, feedback: Feedback) -> SafeString:
        """A link to the task that answers it."""
        return links(Task.objects.filter(feedback=feedback))
