"""The page of one agent: what it does now and what it may do; its form is one click away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from core.admin.contexts import admin_context
from core.hooks import Hook
from orgchart.admin.editing import EditAdmin
from orgchart.admin.pausing import pause_facts
from orgchart.models import Agent

EDIT = "edit"
"""The parameter of the address that opens the form."""

about_agent = Hook[[HttpRequest, Agent], Mapping[str, Any]](
    "what the page of an agent shows of the rooms above"
)


class AgentPageAdmin(EditAdmin):
    """An agent's own page instead of its form (Spec: people 40)."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """GET shows the agent; with `?edit=1` the form, to those who may change it."""
        edits = EDIT in request.GET and self.has_change_permission(request)
        if object_id is None or request.method == "POST" or edits:
            return super().changeform_view(request, object_id, form_url, extra_context)
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return self.gone(request, object_id) if row is None else self._page(request, row)

    def _page(self, request: HttpRequest, row: Any) -> HttpResponse:
        context = admin_context(
            self,
            request,
            title=str(row),
            original=row,
            agent=row,
            pause_facts=pause_facts(row),
            buttons=self.act_buttons(request, row),
            may_edit=self.has_change_permission(request, row) and self._is_member(request, row),
        )
        for shown in about_agent(request, row):
            context |= shown
        return TemplateResponse(request, "admin/nexus/agent.html", context)
