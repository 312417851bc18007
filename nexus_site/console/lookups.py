"""What an address may ask of a table: the filters the table declares, and nothing else."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG, ChangeList
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from core.admin.contexts import admin_context
from core.database import database_now
from core.decision import Code, deny
from core.people import record_refused_person
from nexus_site.console.membership import MembersOnly

if TYPE_CHECKING:
    AnyAdmin = ModelAdmin[Any]
else:
    AnyAdmin = object


class DeclaredFilters(ChangeList):
    """Rows by the declared filters; Django would take the name of any column and any look-up."""

    def get_filters(self, request: HttpRequest) -> Any:
        """The filters. Raises DisallowedModelAdminLookup for a parameter that none of them took."""
        found = super().get_filters(request)
        if undeclared := sorted(found[2].keys() - self._hierarchy(request)):
            raise DisallowedModelAdminLookup(undeclared[0])
        return found

    def _hierarchy(self, request: HttpRequest) -> frozenset[str]:
        """The bounds that Django makes of a chosen year of the table's date hierarchy."""
        if f"{self.date_hierarchy}__year" not in request.GET:
            return frozenset()
        return frozenset({f"{self.date_hierarchy}__gte", f"{self.date_hierarchy}__lt"})


class DeclaredLookups(AnyAdmin):
    """Answers every address of its table: with the rows, or with a page that says why not."""

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Whatever Django thinks of it: the table decides, and more strictly."""
        return True

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The table that takes no other filter."""
        return _declared(super().get_changelist(request, **kwargs))

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The table. Raises IncorrectLookupParameters for values that no column can hold."""
        try:
            return super().get_changelist_instance(request)
        except (DataError, OverflowError, ValueError) as problem:
            raise IncorrectLookupParameters from problem

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The table. A value that its filter does not have shows all rows and a message.

        A filter that the table does not have is answered with 400.
        """
        if ERROR_FLAG in request.GET:
            messages.warning(
                request, gettext("No filter has such a value: this is the whole table.")
            )
        try:
            answer: HttpResponse = super().changelist_view(request, extra_context)
        except DisallowedModelAdminLookup as asked:
            return self._not_a_filter(request, str(asked))
        return answer

    def _get_obj_does_not_exist_redirect(
        self,
        request: HttpRequest,
        opts: Any,
        object_id: str,
    ) -> HttpResponse:
        """The page that says that nothing is here, for a row that this person does not see.

        An attempt to change it is recorded; answered, not raised, so that the record stays.
        """
        from nexus_site.serving.errors import not_found

        if request.method == "POST":
            record_refused_person(
                request,
                deny(
                    Code.NOT_FOUND,
                    f"There is no {opts.verbose_name_raw} with this id",
                    "choose one from the list",
                    rule="the row exists in an organisation of yours (spec: people 35)",
                ),
                subject=f"page:{request.path}"[:200],
                now=database_now(),
            )
        return not_found(request, Http404(object_id))

    def _not_a_filter(self, request: HttpRequest, asked: str) -> HttpResponse:
        context = admin_context(
            self, request, gettext("Not a filter"), asked=asked[:100], back=request.path
        )
        return TemplateResponse(request, "admin/nexus/not_a_filter.html", context, status=400)


def _declared(table: type[ChangeList]) -> type[ChangeList]:
    return type(table.__name__, (DeclaredFilters, table), {})


@cache
def guarded(page: type[ModelAdmin[Any]]) -> type[ModelAdmin[Any]]:
    """The same page, of the person's organisations, with the look-ups that it declares."""
    return type(
        page.__name__, (DeclaredLookups, MembersOnly, page), {"__module__": page.__module__}
    )
