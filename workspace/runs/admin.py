"""The humans' face of runs: what agents ran, built and deployed, with its log."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer
from core.admin.base import column, computed_column, listed, printed, shown_column
from core.ids import row_id
from core.people import signed_in
from core.permissions import Deed
from orgchart.people.members import visible_agents
from workspace.models import Run
from workspace.runs.stopping import stop_run


def _stop(call: ActRequest) -> Answer:
    stop_run(run_id=call.row.id, caller=call.person, reason=call.reason, now=call.now)
    return gettext("Run %(run)s is being stopped; its agent is notified.") % {"run": call.row.id}


STOP = Act(
    name="stop",
    title=_("Stop run"),
    icon="stop_circle",
    danger=True,
    deed=Deed.STOP_RUN,
    explanation=_(
        "All programs of this run end within seconds. The agent sees your name and your reason in "
        "the answer of its call. A stopped run is no evidence for a verdict."
    ),
    perform=_stop,
    facts=lambda row: [(gettext("Agent"), row.agent.handle), (gettext("Tool"), row.tool)],
    possible=lambda row: row.ended_at is None and not (row.stopped_for or row.is_interrupted),
)


@admin.register(Run)
class RunAdmin(ActingAdmin):
    """Every run of an agent, and how it ended."""

    acts = (STOP,)
    list_display = ("id", "agent", "tool", "asked_at", "ended_at", "outcome")
    list_select_related = ("agent",)
    list_filter = ("asked_at",)
    dated_by = "asked_at"
    search_fields = ("commit",)
    search_help_text = _("A run's number, its agent's handle, or a commit")
    fields = (
        "id", "agent", "tool", "path_list", "commit", "asked_at", "started_at", "ended_at",
        "outcome", "output_sha256", "log",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Add whether it has no end, and its time is over by the database's clock."""
        rows: QuerySet[Run] = super().get_queryset(request)
        return rows.annotate(is_interrupted=Q(ended_at=None, ends_by__lte=Now()))

    def find(self, request: HttpRequest, rows: QuerySet[Run], term: str) -> QuerySet[Run] | None:
        """By number or agent; else by commit, among the newest."""
        run = row_id(term)
        if run is not None:
            return rows.filter(id=run)
        agents = visible_agents(signed_in(request), term)
        return rows.filter(agent__in=agents) if agents else None

    @column(_("outcome"))
    def outcome(self, row: Any) -> str:
        """How it ended, or that it has not."""
        if row.stopped_for:
            return gettext("stopped: %(reason)s") % {"reason": row.stopped_for}
        if row.timed_out:
            return gettext("stopped: it took too long")
        if row.is_interrupted:
            return gettext("interrupted: the server ended meanwhile")
        if row.ended_at is None:
            return gettext("running") if row.started_at else gettext("waiting")
        if row.exit_status is None:
            return gettext("killed")
        return gettext("exit status %(number)s") % {"number": row.exit_status}

    path_list = shown_column("paths", _("paths"), listed)

    log = computed_column(_("log"), lambda row: printed(row.output))
