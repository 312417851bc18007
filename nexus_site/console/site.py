"""The admin's site: every page of it leaves a trace of who was refused what."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.sites import UnfoldAdminSite

from core.decision import Deny
from core.deeds import BOARD, deed_of, group_refusal
from core.people import SignedIn, record_refusal, signed_in
from nexus_site.console.lookups import guarded

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

View = Callable[..., HttpResponseBase]


def record_refusals(view: View) -> View:
    """The same view; a refused attempt to change something is recorded in the ledger."""

    @wraps(view)
    def recorded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        _require_storable(request)
        try:
            return view(request, *args, **kwargs)
        except PermissionDenied as refusal:
            if request.method not in SAFE and request.user.is_authenticated:
                who = signed_in(request)
                record_refusal(
                    who=who,
                    deny=_refusal(who, str(refusal) or request.path),
                    subject=f"page:{request.path}",
                    now=timezone.now(),
                )
            raise

    return recorded


def _refusal(who: SignedIn, permission: str) -> Deny:
    """The refusal of a page: the deed's title and groups, or the page that the Board may open."""
    deed = deed_of(permission)
    title, allowed = (deed.value.title, deed.value.groups) if deed else (permission, BOARD)
    return group_refusal(who.groups, title, allowed, permission)


def _require_storable(request: HttpRequest) -> None:
    """Refuse what no database can hold, in address or form, before anything asks for it."""
    sent = [request.path, *request.GET]
    sent += [value for values in request.GET.lists() for value in values[1]]
    sent += [value for values in request.POST.lists() for value in values[1]]
    if any("\x00" in text for text in sent):
        raise SuspiciousOperation("a NUL character")


class PeopleSite(UnfoldAdminSite):
    """The theme's site with our pages, recording refusals."""

    enable_nav_sidebar = True
    index_title = "Dashboard"

    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Every table, our own and those of libraries, filtered by what it declares only."""
        super().register(model_or_iterable, guarded(admin_class or ModelAdmin), **options)

    def admin_view(self, view: View, cacheable: bool = False) -> View:  # noqa: FBT001, FBT002  Django's own signature
        """Check that a member of the staff is signed in, as Django does, and record refusals."""
        checked: View = super().admin_view(record_refusals(view), cacheable)
        return checked

    def extra_urls(self) -> list[URLPattern]:
        """Pages that belong to no table."""
        from governance.interventions.pages import codes_page
        from nexus_site.console.explain import explain_page

        return [
            path("explain/", self.admin_view(explain_page), name="explain"),
            path("confirmation-codes/", self.admin_view(codes_page), name="confirmation_codes"),
        ]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The dashboard."""
        from nexus_site.console.dashboard import figures

        context = {**(extra_context or {}), **figures(request)}
        response: HttpResponse = super().index(request, context)
        return response
