"""Which organisation a page is about: named in the address, or chosen by the person."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from core.ids import row_id
from core.people import signed_in
from orgchart.models import Organisation
from orgchart.people.members import visible_organisations

OFFERED = 200
"""Organisations on the page of choice; others are reached by their address."""


def chosen_organisation(request: HttpRequest) -> Organisation | None:
    """The organisation that the address names, or the person's only one."""
    rows = visible_organisations(signed_in(request)).order_by("id")
    chosen = _asked_for(request)
    if chosen is not None:
        return rows.filter(id=chosen).first()
    first = list(rows[:2])
    return first[0] if len(first) == 1 else None


def names_organisation(request: HttpRequest) -> bool:
    """Whether the address names one by its number."""
    return _asked_for(request) is not None


def redirect_to_organisation(
    request: HttpRequest, organisation: Organisation
) -> HttpResponse | None:
    """A redirect to the page of a form with its organisation in the address; None if it is there.

    The person's only organisation may be another one when the form is sent (Spec: people 8).
    """
    if names_organisation(request):
        return None
    asked = request.GET.copy()
    asked["organisation"] = str(organisation.id)
    return HttpResponseRedirect(f"?{asked.urlencode()}")


def _asked_for(request: HttpRequest) -> int | None:
    return row_id(request.GET.get("organisation", ""))


def choose_organisation(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """The page on which a person chooses one."""
    rows = visible_organisations(signed_in(request)).order_by("name")
    context = {**context, "organisations": rows[:OFFERED]}
    return TemplateResponse(request, "admin/nexus/choose_organisation.html", context)
