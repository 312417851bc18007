"""The admin's site: every page of it leaves a trace of who was refused what."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, cast

from django.contrib.admin import ModelAdmin
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Field
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from core.database import database_now
from core.decision import Deny
from core.people import SignedIn, record_refused_person, signed_in
from core.permissions import BOARD, deed_of, group_refusal
from nexus_site.console import known_browsers
from nexus_site.console.first_steps import first_steps, on_password_changed
from nexus_site.console.login import OwnPasswordForm
from nexus_site.console.lookups import guarded
from nexus_site.console.signed_out import keep_typed
from nexus_site.console.visible import show_controls
from orgchart.people.passwords import lock_user
from workspace.sandbox.weaknesses import find_weaknesses

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

View = Callable[..., HttpResponseBase]


def record_refusals(view: View) -> View:
    """The same view; a refused attempt to change something is recorded in the ledger."""

    @wraps(view)
    def recorded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        _require_storable(request)
        try:
            return show_controls(view(request, *args, **kwargs))
        except PermissionDenied as refusal:
            if request.method not in SAFE and request.user.is_authenticated:
                deny = _refusal(signed_in(request), str(refusal) or request.path)
                subject = f"page:{request.path}"
                record_refused_person(request, deny, subject=subject, now=database_now())
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


class ChoicesOfField(AutocompleteJsonView):
    """Django's view, which would fail for a relation that another table's field makes."""

    def process_request(self, request: HttpRequest) -> tuple[Any, ...]:
        """What is asked for. Raises PermissionDenied for what is no field of a form."""
        found: tuple[Any, ...] = super().process_request(request)
        if not isinstance(found[2], Field):
            raise PermissionDenied
        return found


class PeopleSite(UnfoldAdminSite):
    """The theme's site with our pages, recording refusals."""

    enable_nav_sidebar = True
    index_title = _("Waiting for you")

    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Every table, our own and those of libraries, filtered by what it declares only."""
        super().register(model_or_iterable, guarded(admin_class or ModelAdmin), **options)

    def admin_view(self, view: View, cacheable: bool = False) -> View:  # noqa: FBT001, FBT002  Django's own signature
        """Check that a member of the staff is signed in and ready, and record refusals."""
        checked: View = super().admin_view(record_refusals(first_steps(view)), cacheable)
        return keep_typed(checked)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """The tables by room, computed only when a page reads them: its navigation is our own."""
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What every page shows: the theme's context, and what isolates agents too weakly."""
        context: dict[str, Any] = super().each_context(request)
        return {**context, "weaknesses": find_weaknesses()}

    def get_urls(self) -> list[Any]:
        """Without Django's way to a row's public page: no table of ours has one."""
        return [url for url in super().get_urls() if getattr(url, "name", "") != "view_on_site"]

    def extra_urls(self) -> list[URLPattern]:
        """Pages that belong to no table."""
        from governance.interventions.pages import codes_page
        from nexus_site.company.pages import company_page, matrix_page
        from nexus_site.console import saved_filters
        from nexus_site.console.explain import explain_page
        from nexus_site.live.pages import feed_page
        from nexus_site.live.stream import without_stream

        return [
            path("company/", self.admin_view(company_page), name="company"),
            path("feed/", self.admin_view(feed_page), name="feed"),
            path("live", self.admin_view(without_stream), name="live"),
            path("matrix/", self.admin_view(matrix_page), name="matrix"),
            path("explain/", self.admin_view(explain_page), name="explain"),
            path("confirmation-codes/", self.admin_view(codes_page), name="confirmation_codes"),
            path("filters/", self.admin_view(saved_filters.save_page), name="save_filter"),
            path(
                "filters/<int:filter_id>/remove/",
                self.admin_view(saved_filters.remove_page),
                name="remove_filter",
            ),
        ]

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page to sign in; who did so is known in this browser."""
        answer: HttpResponse = super().login(request, extra_context)
        if request.method == "POST" and answer.status_code == HTTPStatus.FOUND:
            known_browsers.remember(request, answer)
        return answer

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """What the search of every page finds, for this person, now: nothing of it is kept."""
        from nexus_site.console.searching import search_everywhere

        results = Paginator(search_everywhere(request, request.GET.get("s", "")), 100)
        context = {"results": results.page(1), "page_obj": results, "page_counter": 0}
        template = "unfold/helpers/command_results.html"
        return TemplateResponse(request, template, context, headers={"HX-Trigger": "search"})

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one's own password; from then on it is theirs alone."""
        page = PasswordChangeView.as_view(
            form_class=partial(OwnPasswordForm, request=request),
            success_url=reverse("admin:password_change_done"),
            template_name="admin/nexus/own_password.html",
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        if request.method != "POST":
            return cast("HttpResponse", page(request))
        with transaction.atomic():
            lock_user(request.user)
            answer = page(request)
            if answer.status_code == HTTPStatus.FOUND:
                on_password_changed(request)
        return cast("HttpResponse", answer)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        """The choices of a form's field."""
        return cast("HttpResponse", ChoicesOfField.as_view(admin_site=self)(request))

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What waits for the person, and the state of each organisation."""
        from nexus_site.console.dashboard import figures
        from nexus_site.console.desk import waiting_figures

        waiting = waiting_figures(request)
        context = {**(extra_context or {}), **waiting, **figures(request, waiting["turns"])}
        response: HttpResponse = super().index(request, context)
        return response
