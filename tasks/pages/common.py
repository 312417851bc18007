"""What the pages about one organisation's tasks share: who may look, and at whose."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse

from orgchart.models import Organisation

VIEW = "tasks.view_task"
OFFERED = 200
"""Organisations to choose from; any other one by its address."""


def opened(
    model_admin: Any, request: HttpRequest, title: str
) -> tuple[Organisation | None, dict[str, Any]]:
    """The organisation that is looked at, None where it has to be chosen, and the page's context.

    Raises PermissionDenied for whoever may not see tasks.
    """
    if not request.user.has_perm(VIEW):
        raise PermissionDenied(VIEW)
    request.current_app = model_admin.admin_site.name
    found = list(Organisation.objects.order_by("name")[:OFFERED])
    organisation = _chosen(found, request.GET.get("organisation", ""))
    context = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "opts": model_admin.opts,
        "organisation": organisation,
        "organisations": found,
        "several": len(found) > 1,
    }
    if organisation is not None:
        context["subtitle"] = organisation.name
    return organisation, context


def _chosen(found: list[Organisation], asked: str) -> Organisation | None:
    """The one that was asked for, or the only one there is."""
    if asked.isascii() and asked.isdigit() and len(asked) < 18:
        known = next((one for one in found if one.id == int(asked)), None)
        return known or Organisation.objects.filter(id=int(asked)).first()
    return found[0] if len(found) == 1 else None


def choose(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """The page that asks for the organisation."""
    return TemplateResponse(request, "admin/nexus/choose_organisation.html", context)
