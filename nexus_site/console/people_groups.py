"""The groups of people; `migrate` writes them."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from core.admin.base import BrowseAdmin, chips, column, computed_column

admin.site.unregister(Group)


@admin.register(Group)
class PeopleGroupAdmin(BrowseAdmin):
    """The groups and what each may; they come with `migrate` and are not edited here."""

    subject = ""
    list_display = ("name", "people")
    search_fields = ("name",)
    fields = ("name", "may")
    ordering = ("name",)
    organisation_path = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        """With those of its users that the person sees."""
        seen = admin.site._registry[User].get_queryset(request)  # noqa: SLF001  Django's public name
        rows: QuerySet[Group] = super().get_queryset(request)
        return rows.prefetch_related(Prefetch("user_set", seen.order_by("username"), "seen"))

    people = computed_column(
        _("people"), lambda row: chips([user.username for user in row.seen[:50]])
    )

    @column(_("may"))
    def may(self, row: Group) -> SafeString:
        """Its rights."""
        rights = Permission.objects.filter(group=row).select_related("content_type")
        names = [f"{p.content_type.app_label}.{p.codename}" for p in rights]
        return chips(sorted(names))
