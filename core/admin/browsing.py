"""Fast, read-only list pages for large tables: cheap counts, bounded filters."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib.admin import FieldListFilter, ListFilter, ShowFacets
from django.contrib.admin.utils import get_fields_from_path
from django.core.paginator import Page, Paginator
from django.db.models import BooleanField, DateTimeField, Field, ForeignKey, Model, QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    BooleanRadioFilter,
    ChoicesDropdownFilter,
    DropdownFilter,
    RangeDateTimeFilter,
    RelatedDropdownFilter,
    TextFilter,
)
from unfold.enums import ActionVariant

from core.admin.bounded import (
    BoundedList,
    begins_an_index,
    has_too_many_words,
    is_indexed,
    is_list,
    newest,
    newest_first,
    part_of,
    several_organisations,
    since,
    until,
)
from core.admin.exporting import ExportingAdmin
from core.events import text
from core.ids import row_id
from core.labels import Text

RECENT = 5000  # newest rows that filters offer values of
COUNTED = 10_000  # rows a page counts and can turn to; older ones by filter
INSTALLATION = ""  # the path of rows that belong to no organisation: for members of every one

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
else:
    AnyPaginator = Paginator


class CappedPaginator(AnyPaginator):
    """Counts no further than it turns: a page of a large table costs what a small one's does."""

    @cached_property
    def count(self) -> int:
        """The number of rows, or COUNTED if there are more."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[:COUNTED].count()

    several: Sequence[int] = ()
    """The organisations of which the rows are, where they are more than one."""

    def page(self, number: int | str) -> Page[Any]:
        """One page."""
        found = super().page(number)
        begin = (found.number - 1) * self.per_page
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        found.object_list = part_of(rows, self.several, begin=begin, end=begin + self.per_page)
        return found


class ValueFilter(DropdownFilter):
    """Keeps the rows with a value of the column `parameter_name`."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows with the chosen value."""
        chosen = self.value()
        return queryset.filter(**{self.parameter_name: text(chosen)}) if chosen else queryset


class RecentFilter(ValueFilter):
    """Offers the values of the column `parameter_name` among the newest rows."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the values, and the one chosen before."""
        column = self.parameter_name
        rows = model_admin.get_queryset(request).order_by("-pk")
        several = several_organisations(request, model_admin)
        newest = part_of(rows, several, begin=0, end=RECENT).values_list(column, flat=True)
        found = {*newest, self.value()}
        return [(value, value) for value in sorted(found - {None, ""})]


class WordsFilter(ValueFilter):
    """Offers the values of the column `parameter_name` by their words."""

    words: Mapping[str, str] = {}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the values with what people read for them."""
        return [(value, gettext(words)) for value, words in self.words.items()]


class PrefixFilter(TextFilter):
    """Finds rows whose column `parameter_name` begins with what is typed."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows that begin so."""
        chosen = self.value()
        if not chosen:
            return queryset
        return queryset.filter(**{f"{self.parameter_name}__startswith": text(chosen)})


def filter_by(
    kind: type[ValueFilter | PrefixFilter], column: str, title: Text, **more: Any
) -> type[ValueFilter | PrefixFilter]:
    """A filter of this kind by a column that people know as `title`."""
    return type(kind.__name__, (kind,), {"parameter_name": column, "title": title, **more})


class MomentFilter(RangeDateTimeFilter):
    """A range of time in UTC; a day alone is the whole day, what is no time is no bound."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows within the bounds."""
        first, last = self.bound("from", "00:00:00"), self.bound("to", "23:59:59.999999")
        queryset = self.since(queryset, first) if first else queryset
        return self.until(queryset, last) if last else queryset

    def since(self, rows: QuerySet[Any], moment: datetime) -> QuerySet[Any]:
        """The rows of this moment or later."""
        return rows.filter(**{f"{self.parameter_name}__gte": moment})

    def until(self, rows: QuerySet[Any], moment: datetime) -> QuerySet[Any]:
        """The rows of this moment or earlier."""
        return rows.filter(**{f"{self.parameter_name}__lte": moment})

    def bound(self, end: str, clock: str) -> datetime | None:
        """One end of the range, `from` or `to`; a day alone gets the time of day `clock`."""
        day = self.used_parameters.get(f"{self.parameter_name}_{end}_0")
        time = self.used_parameters.get(f"{self.parameter_name}_{end}_1") or clock
        try:
            return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC)
        except ValueError:
            return None


class MadeFilter(MomentFilter):
    """A range of the time that rows were made at, which their ids ascend with."""

    def since(self, rows: QuerySet[Any], moment: datetime) -> QuerySet[Any]:
        """The rows made at this moment or later."""
        return since(rows, self.parameter_name, moment)

    def until(self, rows: QuerySet[Any], moment: datetime) -> QuerySet[Any]:
        """The rows made at this moment or earlier."""
        return until(rows, self.parameter_name, moment)


def filter_for(
    model: type[Model], path: str, dated_by: str
) -> str | tuple[str, type[FieldListFilter]]:
    """The theme's filter for a column, by what the column holds; Django's own for any other."""
    match get_fields_from_path(model, path)[-1]:
        case ForeignKey(name="organisation"):
            return path, RelatedDropdownFilter
        case ForeignKey():
            return path, AutocompleteSelectFilter
        case DateTimeField():
            return path, MadeFilter if path == dated_by else MomentFilter
        case BooleanField():
            return path, BooleanRadioFilter
        case Field(choices=choices) if choices:
            return path, ChoicesDropdownFilter
        case _:
            return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ListButton:
    """A link above a list to another page of its table, for people that `may` open it."""

    title: Text
    icon: str
    page: str
    is_primary: bool = True
    may: Callable[[HttpRequest], bool] = lambda _request: True

    def shown(self) -> dict[str, Any]:
        """The link as the theme draws it."""
        return {
            "title": self.title,
            "icon": self.icon,
            "variant": ActionVariant.PRIMARY if self.is_primary else ActionVariant.DEFAULT,
            "attrs": {},
            "path": reverse(f"admin:{self.page}"),
        }


class ReadOnlyAdmin(ExportingAdmin, ModelAdmin):
    """Looks, and has no way to add, change or delete.

    `organisation_path` leads from a row to its organisation's id; None: everybody shares the rows.
    `related` names what is read in the same query, `list_without` columns that no list needs.
    `dated_by` is the column of the time that a row was made at, which ids ascend with. `served`
    names columns whose filters are quick without an index that begins with them.
    `own_pages` are more pages of the table: the address, its name, and what answers a request to
    it, called with this admin and the request.
    """

    organisation_path: str | None = "organisation_id"
    related: tuple[str, ...] = ()
    list_without: tuple[str, ...] = ()
    list_buttons: tuple[ListButton, ...] = ()
    own_pages: tuple[tuple[str, str, Callable[..., HttpResponse]], ...] = ()
    dated_by = "created_at"
    served: Collection[str] = ()
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # each would count the whole table
    sortable_by: Collection[str] = ()
    paginator = CappedPaginator
    list_per_page = 50
    actions = None

    def get_urls(self) -> list[URLPattern]:
        """With the table's own pages, before Django's own catch-all."""
        own = [
            path(address, self.admin_site.admin_view(partial(view, self)), name=name)
            for address, name, view in self.own_pages
        ]
        return [*own, *super().get_urls()]

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """The declared filters; of a column that is only named, the one that fits it."""
        declared = super().get_list_filter(request)
        return [
            filter_for(self.model, each, self.dated_by) if isinstance(each, str) else each
            for each in declared
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows, with what is related and without what is long."""
        rows: QuerySet[Any] = super().get_queryset(request)
        if self.related:
            rows = rows.select_related(*self.related)
        return rows.defer(*self.list_without) if is_list(request) else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The rows that `find` finds; by Django's own search where a table has none."""
        term = text(search_term.strip())
        if has_too_many_words(request, term):
            return queryset.none(), False
        found = self.find(request, queryset, term) if term else queryset
        if found is not None:
            return found, False
        served = all(
            name.endswith("__exact") and begins_an_index(self.model, name)
            for name in self.search_fields
        )
        few = queryset if served else newest(queryset, request, self)
        results: tuple[QuerySet[Any], bool] = super().get_search_results(request, few, term)
        return results

    def find(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any] | None:
        """The rows that an index finds for a search; None: by `search_fields`.

        Among the newest, but for fields that are `__exact` and that an index begins with.
        """
        return None

    def newest_first(self, request: HttpRequest) -> OrderBy:
        """The order in which rows are looked through."""
        return newest_first()

    def is_served(self, chosen: ListFilter) -> bool:
        """Whether a filter is quick whatever the table holds."""
        path = getattr(chosen, "field_path", None) or getattr(chosen, "parameter_name", None) or ""
        named = path in self.served or path.endswith("organisation")
        return named or isinstance(chosen, MadeFilter) or is_indexed(self.model, chosen)

    def get_paginator(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """What turns the pages of the list."""
        paginator: Any = super().get_paginator(request, *args, **kwargs)
        paginator.several = several_organisations(request, self)
        return paginator

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BoundedList]:
        """The list that stays quick."""
        return BoundedList

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """What the page of the list shows besides its rows."""
        return {}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with the buttons that this person may use."""
        context = self.list_context(request) | (extra_context or {})
        page: Any = super().changelist_view(request, context)
        buttons = [button.shown() for button in self.list_buttons if button.may(request)]
        if buttons and hasattr(page, "context_data"):
            page.context_data["actions_list"] = [
                *(page.context_data.get("actions_list") or []),
                *buttons,
            ]
        answer: HttpResponse = page
        return answer

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Only services write."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What happened stays written."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What happened stays written."""
        return False


def number(value: str) -> int:
    """The number asked for, or one that no row has."""
    found = row_id(value)
    return -1 if found is None else found
