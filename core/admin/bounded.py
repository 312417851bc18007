"""Lists that read no more of a large table than of a small one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.contrib import messages
from django.contrib.admin import ListFilter
from django.contrib.admin.utils import get_fields_from_path
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import (
    BooleanField,
    F,
    Field,
    Max,
    Min,
    Model,
    Q,
    QuerySet,
    Subquery,
    UniqueConstraint,
)
from django.db.models.expressions import OrderBy
from django.http import HttpRequest
from django.utils.translation import gettext
from unfold.views import ChangeList

from core.people import signed_in

LOOKED_THROUGH = 20_000
"""Where no index serves a filter, it looks through this many rows: the newest that are left."""
MOST_PARTS = 100
"""Where a person is a member of more organisations, their rows are looked for among all."""
MOST_WORDS = 10
"""Words of a search in a list: each is looked for in every row that has the ones before it."""
CUT = "nexus_cut"
"""The attribute of a request for whose answer not every row was looked at."""
UNCERTAIN = timedelta(hours=1)
"""How much later than a row with a greater id a row may say that it was made."""


class BoundedList(ChangeList):
    """Looks through the newest rows where no index serves a filter or a search.

    Of what the filters with an index leave, so that a rare row is found among an agent's, also
    where others have written much since.
    """

    root_queryset: QuerySet[Any]
    _filters: Any = None

    def get_filters(self, request: HttpRequest) -> Any:
        """The filters, read once: some ask the database what they offer."""
        if self._filters is None:
            self._filters = super().get_filters(request)
        return self._filters

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        """As the page orders its rows: an address cannot ask for a column that is not sortable."""
        if not self.sortable_by:
            self.params.pop(ORDER_VAR, None)
        ordering: list[str] = super().get_ordering(request, queryset)
        return ordering

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str] | None = None
    ) -> QuerySet[Any]:
        """The rows that are asked for."""
        page: Any = self.model_admin
        used = [each for each in self.get_filters(request)[0] if any(each.used_parameters.values())]
        served = [each for each in used if page.is_served(each)]
        if len(served) < len(used):
            left = self.root_queryset
            for each in served:
                found = each.queryset(request, left)
                left = left if found is None else found
            self.root_queryset = newest(self.root_queryset, request, page, among=left)
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows


def newest(
    rows: QuerySet[Any], request: HttpRequest, page: Any, *, among: QuerySet[Any] | None = None
) -> QuerySet[Any]:
    """The newest LOOKED_THROUGH of these rows, or of those `among` them; a list says it has more.

    What is rare then costs the same in a small table and in a large one. `page` is the admin of the
    table, whose `newest_first` is an order by the ids of the rows or by an expression of them.
    """
    order, several = page.newest_first(request), several_organisations(request, page)
    chosen = rows if among is None else among
    if several and order == newest_first():
        edge = [*newest_of_each(chosen, several, most=LOOKED_THROUGH + 1)[LOOKED_THROUGH:]]
        few = rows.filter(IsAmong(newest_of_each(chosen, several, most=LOOKED_THROUGH)))
    else:
        ordered = chosen.order_by(order).values_list("pk", flat=True)
        edge = [*ordered[LOOKED_THROUGH : LOOKED_THROUGH + 1]]
        few = rows.alias(place=order.expression).filter(place__gt=edge[0]) if edge else rows
    if edge:
        say_cut(request)
    return few


def part_of(rows: QuerySet[Any], several: Sequence[int], *, begin: int, end: int) -> QuerySet[Any]:
    """The rows of an ordered list from one number to another.

    Of several organisations by their keys, where the list has its newest rows first.
    """
    column = _newest_by(rows)
    if not several or not column:
        return rows[begin:end]
    few = newest_of_each(rows, several, most=end, column=column)[begin:end]
    return rows.filter(pk__in=[each["key"] for each in few])


def _newest_by(rows: QuerySet[Any]) -> str:
    """The column that a list is ordered by, where that is newest first; or ''."""
    first: Any = next(iter(rows.query.order_by), "")
    if first == newest_first():
        return "pk"
    return first[1:] if isinstance(first, str) and first.startswith("-") else ""


def several_organisations(request: HttpRequest, page: Any) -> Sequence[int]:
    """The organisations of which a person sees rows, where they are few and more than one."""
    seen = signed_in(request).organisations or ()
    is_parted = page.organisation_path == "organisation_id" and 1 < len(seen) <= MOST_PARTS
    return sorted(seen) if is_parted else ()


def newest_of_each(
    rows: QuerySet[Any], organisations: Sequence[int], *, most: int, column: str = "pk"
) -> QuerySet[Any]:
    """The keys of the newest rows, each organisation's found by its own index.

    PostgreSQL expects the rows of several organisations everywhere in a table, and reads it from
    its end: where they are few or old, it would read all rows of all others (Spec: people 64).
    """
    order = ["-pk"] if column == "pk" else [f"-{column}", "-pk"]
    parts = [
        rows.filter(organisation_id=each)
        .order_by(*order)
        .annotate(key=F("pk"), place=F(column))
        .values("key", "place")[:most]
        for each in organisations
    ]
    found: QuerySet[Any] = parts[0].union(*parts[1:], all=True).order_by("-place", "-key")[:most]
    return found


class IsAmong(Subquery):
    """Whether a row has one of these keys, which are found before PostgreSQL looks for the row."""

    output_field = BooleanField()

    def __init__(self, few: QuerySet[Any]) -> None:
        meta: Any = few.model._meta  # noqa: SLF001  Django's public name
        key = f'"{meta.db_table}"."{meta.pk.column}"'
        super().__init__(few, template=f"{key} = ANY(ARRAY(SELECT key FROM (%(subquery)s) AS few))")


def cut() -> str:
    """What a list says that looked through its newest rows."""
    said = gettext(
        "The newest %(number)s rows were looked through. To see older ones, choose their time, "
        "an agent or a status."
    )
    return said % {"number": f"{LOOKED_THROUGH:,}"}


def say_cut(request: HttpRequest) -> None:
    """Say so on the page of the list; the search of every page would say it on the next page."""
    setattr(request, CUT, True)
    if is_list(request):
        messages.info(request, cut())


def has_too_many_words(request: HttpRequest, term: str) -> bool:
    """Whether a search has more words than MOST_WORDS; its list says so."""
    found = len(term.split()) > MOST_WORDS
    if found and is_list(request):
        said = gettext("A search has %(number)s words at most.")
        messages.warning(request, said % {"number": MOST_WORDS})
    return found


def is_cut(request: HttpRequest) -> bool:
    """Whether what a request asks for was looked for among the newest rows only."""
    return getattr(request, CUT, False)


def is_list(request: HttpRequest) -> bool:
    """Whether a list of rows is asked for, and no single row."""
    match = request.resolver_match
    return match is not None and (match.url_name or "").endswith("_changelist")


def newest_first() -> OrderBy:
    """The order of rows whose ids ascend with time."""
    return F("pk").desc()


def is_indexed(model: type[Model], chosen: ListFilter) -> bool:
    """Whether an index of the table begins with the column that a filter asks for.

    Or is of the rows with these values alone: the open ones of a table, for one.
    """
    path = getattr(chosen, "field_path", None) or getattr(chosen, "parameter_name", None)
    try:
        column = get_fields_from_path(model, path or "")[0]
    except FieldDoesNotExist:
        return False
    if begins_an_index(model, column.name):
        return True
    asked = chosen.used_parameters
    if any(name.endswith("__isnull") for name in asked):  # its value is none of the column's
        return False
    values = [*_values(column, asked.values())]
    return bool(values) and all(
        any(value in few for few in _partial(model).get(column.name, ())) for value in values
    )


def begins_an_index(model: type[Model], path: str) -> bool:
    """Whether an index over all rows begins with the column that a path to a value begins with."""
    return path.partition("__")[0] in _leading(model)


def _values(column: Field[Any, Any], given: Iterable[Any]) -> Iterable[Any]:
    for each in given:
        for value in each if isinstance(each, list | tuple) else [each]:
            try:
                yield column.to_python(value)
            except ValidationError:
                yield None


@cache
def _leading(model: type[Model]) -> frozenset[str]:
    """The columns that an index over all rows begins with."""
    meta: Any = model._meta  # noqa: SLF001  Django's public name
    found = {each.name for each in meta.concrete_fields if each.db_index or each.unique}
    indexes = [each for each in meta.indexes if each.condition is None]
    unique = (UniqueConstraint,)
    constraints = [e for e in meta.constraints if isinstance(e, unique) and e.condition is None]
    for index in (*indexes, *constraints):
        first = index.fields[0].removeprefix("-") if index.fields else index.expressions[0]
        found.add(getattr(getattr(first, "expression", first), "name", first))
    return frozenset(name for name in found if isinstance(name, str))


@cache
def _partial(model: type[Model]) -> Mapping[str, Collection[frozenset[Any]]]:
    """By column the values that an index is of which has one condition: that it is one of them."""
    found: dict[str, list[frozenset[Any]]] = {}
    for index in model._meta.indexes:  # noqa: SLF001  as above
        match index.condition:
            case Q(children=[(str(name), value)], negated=False):
                column, _, lookup = name.partition("__")
                if lookup == "in":
                    found.setdefault(column, []).append(frozenset(value))
                elif not lookup:
                    found.setdefault(column, []).append(frozenset([value]))
            case _:
                continue
    return found


def since(rows: QuerySet[Any], column: str, moment: datetime) -> QuerySet[Any]:
    """The rows made at a moment or later, by their ids, which ascend with this column."""
    first = _first_id(rows.model, column, moment - UNCERTAIN)
    return rows.filter(**{f"{column}__gte": moment}, pk__gte=first)


def until(rows: QuerySet[Any], column: str, moment: datetime) -> QuerySet[Any]:
    """The rows made at a moment or earlier, as `since`."""
    end = _first_id(rows.model, column, moment + UNCERTAIN)
    return rows.filter(**{f"{column}__lte": moment}, pk__lt=end)


def _first_id(model: type[Model], column: str, moment: datetime) -> Any:
    """An id before which every row is older than a moment, found in looks at single rows.

    An id that begins with its time needs none.
    """
    rows: QuerySet[Any] = model._default_manager.order_by("pk")  # noqa: SLF001  Django's public name
    ends = rows.aggregate(low=Min("pk"), high=Max("pk"))
    low, high = ends["low"], ends["high"]
    if isinstance(low, str):
        return f"{low.partition('-')[0]}-{moment:%Y%m%d%H%M%S%f}"
    if low is None:
        return 0
    high += 1
    while low < high:
        middle = (low + high) // 2
        found = rows.filter(pk__gte=middle, pk__lt=high).values_list("pk", column).first()
        if found is None or found[1] >= moment:
            high = middle
        else:
            low = found[0] + 1
    return low
