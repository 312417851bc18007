"""The page of the live feed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from core.admin.happened import sentences_of_feed
from core.people import signed_in
from ledger.models import Event
from nexus_site.live.events import SEES, PageWatcher
from orgchart.people.members import visible_organisations

SHOWN = 40


def feed_page(request: HttpRequest) -> HttpResponse:
    """The newest events, and those that follow as they happen. Changes nothing."""
    if not request.user.has_perm(SEES):
        raise PermissionDenied(SEES)
    request.current_app = admin.site.name
    who = signed_in(request)
    rows = PageWatcher(request.GET, who.organisations).filtered()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": gettext("Live"),
        "events": list(rows.order_by("-seq").defer("digest", "details")[:SHOWN]),
        "organisations": visible_organisations(who).order_by("name").values_list("id", "name"),
        "asked": {name: request.GET.get(name, "") for name in ("organisation", "decision", "q")},
        "sentences": sentences_of_feed(),
        "outcomes": Event._meta.get_field("decision").choices,  # noqa: SLF001  Django's public name
    }
    return TemplateResponse(request, "admin/nexus/feed.html", context)
