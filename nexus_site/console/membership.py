"""Every table of the admin shows the rows of the person's organisations (Spec: people 35)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.filters import RelatedFieldListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.forms import ModelChoiceField
from django.http import HttpRequest
from unfold.contrib.filters.admin.mixins import AutocompleteMixin

from core.admin.browsing import INSTALLATION
from core.people import SignedIn, signed_in

if TYPE_CHECKING:
    AnyAdmin = ModelAdmin[Any]
else:
    AnyAdmin = object


class MembersOnly(AnyAdmin):
    """A table without the rows of organisations that the person is not a member of.

    Lists, pages of rows, actions, histories, look-ups and the choices of filters all begin with
    `get_queryset`. A table that names no organisation is of the installation: only members of every
    organisation see it.
    """

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows of the person's organisations."""
        return self.rows_of(super().get_queryset(request), signed_in(request))

    def rows_of(self, rows: QuerySet[Any], who: SignedIn) -> QuerySet[Any]:
        """Those of the rows that this person sees."""
        path = self._organisation_path()
        if path is None or who.organisations is None:
            return rows
        own_rule = getattr(super(), "rows_of", None)
        if own_rule is not None:
            found: QuerySet[Any] = own_rule(rows, who)
            return found
        if path == INSTALLATION:
            return rows.none()
        return rows.filter(**{f"{path.replace('.', '__')}__in": who.organisations})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """By right; what belongs to the installation, for members of every organisation."""
        is_open = self._organisation_path() != INSTALLATION or hasattr(super(), "rows_of")
        may_look = is_open or signed_in(request).is_member_of(None)
        return may_look and super().has_view_permission(request, obj)

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The declared filters, which offer rows that the person sees in their own tables."""
        declared: list[Any] = list(super().get_list_filter(request))
        return [
            (each[0], _of_seen_rows(each[1]))
            if isinstance(each, list | tuple) and issubclass(each[1], RelatedFieldListFilter)
            else each
            for each in declared
        ]

    def _organisation_path(self) -> str | None:
        path: str | None = getattr(self, "organisation_path", INSTALLATION)
        return path


class SeenRows:
    """A filter by another table's row that offers only the rows that the person sees there.

    List it before the theme's own class, whose attributes it uses.
    """

    field: Any
    request: HttpRequest
    model_admin: ModelAdmin[Any]

    def field_choices(
        self, field: Any, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        """The rows, by name."""
        if isinstance(self, AutocompleteMixin):
            return []
        rows = _seen_rows(field.remote_field.model, request, model_admin)
        ordering = getattr(self, "field_admin_ordering")(field, request, model_admin)  # noqa: B009  Django's
        found: list[tuple[str, str]] = field.get_choices(
            include_blank=False,
            ordering=ordering,
            limit_choices_to={"pk__in": rows.values("pk")},
        )
        return found

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """The form of the filter; it names the chosen row only where the person sees it."""
        for each in super().choices(changelist):  # type: ignore[misc]  # the theme's
            for field in each["form"].fields.values():
                if isinstance(field, ModelChoiceField):
                    remote = self.field.remote_field.model
                    field.queryset = _seen_rows(remote, self.request, self.model_admin)
            yield each


def _seen_rows(
    model: type[Model], request: HttpRequest, model_admin: ModelAdmin[Any]
) -> QuerySet[Any]:
    page = model_admin.admin_site._registry.get(model)  # noqa: SLF001  Django's public name
    rows: QuerySet[Any] = page.get_queryset(request) if page else model._default_manager.none()  # noqa: SLF001  as above
    return rows


@cache
def _of_seen_rows(kind: type[RelatedFieldListFilter]) -> type[RelatedFieldListFilter]:
    return type(kind.__name__, (SeenRows, kind), {"__module__": kind.__module__})
