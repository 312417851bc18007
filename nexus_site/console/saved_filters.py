"""Keeping the filters of a list, and removing them: every person for themselves."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from core.admin.refused import refused
from core.database import database_now
from core.decision import Denied
from orgchart.people.filters import remove_filter, save_filter

NO_FILTER = frozenset({"p", "all", "csrfmiddlewaretoken"})
"""What an address of a list may hold besides its filters: the number of its page."""


def filters_in(query: str) -> str:
    """The filters of a list's address, without its page and without what is empty."""
    found = QueryDict(query)
    pairs = [(name, value) for name, values in found.lists() for value in values]
    return urlencode([(n, value) for n, value in pairs if value and n not in NO_FILTER])


@require_POST
def save_page(request: HttpRequest) -> HttpResponse:
    """Keep the filters that a list shows now under a name, and go back to the list."""
    table = _table(request, request.POST.get("table", ""))
    query = filters_in(request.POST.get("query", ""))
    try:
        row = save_filter(
            person_id=_person_id(request),
            table=table.opts.label_lower,
            name=request.POST.get("name", ""),
            query=query,
            now=database_now(),
        )
    except Denied as refusal:
        messages.error(request, refused(refusal.deny))
    else:
        messages.success(request, gettext("The filter %(name)s is saved.") % {"name": row.name})
    return _back(table, query)


@require_POST
def remove_page(request: HttpRequest, filter_id: int) -> HttpResponse:
    """Remove a filter that this person keeps, and go back to its list."""
    row = remove_filter(person_id=_person_id(request), filter_id=filter_id)
    if row is None:
        raise Http404
    messages.success(request, gettext("The filter %(name)s is removed.") % {"name": row.name})
    return _back(_table(request, row.table), filters_in(request.POST.get("query", "")))


def _person_id(request: HttpRequest) -> int:
    return int(request.user.pk)  # type: ignore[arg-type]  # who is not signed in never comes here


def _table(request: HttpRequest, label: str) -> ModelAdmin[Any]:
    """The list of that name, if this person may look at it."""
    found = {model._meta.label_lower: page for model, page in admin.site._registry.items()}  # noqa: SLF001  Django's public names
    page = found.get(label)
    if page is None:
        raise Http404
    if not page.has_view_permission(request):
        raise PermissionDenied
    return page


def _back(table: ModelAdmin[Any], query: str) -> HttpResponse:
    address = reverse(f"admin:{table.opts.app_label}_{table.opts.model_name}_changelist")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)
