"""What the pages of one organisation's tasks share: permission and choice of organisation."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest

from core.admin.contexts import admin_context
from core.ids import row_id
from core.people import signed_in
from orgchart.admin.choosing import OFFERED
from orgchart.models import Organisation
from orgchart.people.members import visible_organisations

VIEW = "tasks.view_task"


def page_context(
    model_admin: Any, request: HttpRequest, title: str
) -> tuple[Organisation | None, dict[str, Any]]:
    """The chosen organisation, None if one has to be chosen, and the page's context.

    Raises PermissionDenied for people who may not see tasks.
    """
    if not request.user.has_perm(VIEW):
        raise PermissionDenied(VIEW)
    rows = visible_organisations(signed_in(request)).order_by("name")
    found = list(rows[:OFFERED])
    organisation = _chosen(rows, found, request.GET.get("organisation", ""))
    context = admin_context(
        model_admin,
        request,
        title,
        organisation=organisation,
        organisations=found,
        several=len(found) > 1,
    )
    if organisation is not None:
        context["subtitle"] = organisation.name
    return organisation, context


def _chosen(
    rows: QuerySet[Organisation], found: list[Organisation], asked: str
) -> Organisation | None:
    """The organisation asked for, or the only one."""
    number = row_id(asked)
    if number is not None:
        known = next((one for one in found if one.id == number), None)
        return known or rows.filter(id=number).first()
    return found[0] if len(found) == 1 else None
