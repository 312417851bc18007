"""Users and their groups; every change is recorded in the ledger."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import BooleanRadioFilter, RelatedDropdownFilter
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from core.actions import Action
from core.admin.base import BrowseAdmin, chips, column
from core.events import Event
from core.people import ADMIN_TOOL, signed_in
from ledger.services import insert_event

admin.site.unregister(User)
admin.site.unregister(Group)


def record_person(request: HttpRequest, person: User, action: Action, remark: str) -> None:
    """One event of a change of who the people are, in the transaction of that change."""
    who = signed_in(request)
    insert_event(
        Event(
            action=action,
            actor=f"human:{who.username}",
            at=timezone.now(),
            tool=ADMIN_TOOL,
            subject=f"human:{person.get_username()}",
            reason=remark,
            request_id=who.request_id,
            details={
                "groups": sorted(person.groups.values_list("name", flat=True)),
                "active": person.is_active,
                "staff": person.is_staff,
                "superuser": person.is_superuser,
            },
        )
    )


@admin.register(User)
class PersonAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]  # only in its stubs
    """People and their groups. Only the Board sees and changes them.

    Only a superuser changes a superuser.
    """

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    actions = None
    list_display = ("username", "name", "group_names", "is_active", "is_staff", "last_login")
    list_filter = (
        ("groups", RelatedDropdownFilter),
        ("is_active", BooleanRadioFilter),
        ("is_staff", BooleanRadioFilter),
    )
    list_filter_submit = True
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Rights", {"fields": ("is_active", "is_staff", "groups")}),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "usable_password", "password1", "password2")}),
        ("Rights", {"fields": ("is_staff", "groups")}),
    )

    history_view = BrowseAdmin.history_view
    gone = BrowseAdmin.gone

    def subject_of(self, row: User) -> str:
        """How the ledger names them."""
        return f"human:{row.get_username()}"

    def organisation_id_of(self, row: User) -> int:
        """Of no organisation."""
        return 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """With the groups, in one query more."""
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.prefetch_related("groups")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """By right; a superuser is changed by superusers only."""
        if obj is not None and obj.is_superuser and not request.user.is_superuser:
            return False
        return bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """People are made inactive: what they did stays theirs."""
        return False

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002  Django's own name
        form_url: str = "",
    ) -> HttpResponse:
        """The new password and its event in one transaction."""
        with transaction.atomic():
            answer: HttpResponse = super().user_change_password(request, id, form_url)
            return answer

    def log_addition(  # type: ignore[override]  # no LogEntry is made
        self, request: HttpRequest, obj: User, message: Any
    ) -> None:
        """The ledger in place of a log of the admin's own."""
        record_person(request, obj, Action.PERSON_ADDED, "")

    def log_change(  # type: ignore[override]  # no LogEntry is made
        self, request: HttpRequest, obj: User, message: Any
    ) -> None:
        """The ledger in place of a log of the admin's own."""
        record_person(request, obj, Action.PERSON_CHANGED, self._what(message))

    def _what(self, message: Any) -> str:
        """Which columns were changed, in words."""
        parts = message if isinstance(message, list) else []
        fields = [name for p in parts for name in p.get("changed", {}).get("fields", [])]
        return ", ".join(str(name) for name in fields) or str(message if not parts else "")

    @column("name")
    def name(self, row: User) -> str:
        """First and last name."""
        return row.get_full_name()

    @column("groups")
    def group_names(self, row: User) -> SafeString:
        """Board, HR, Reviewer, Observer."""
        names = [g.name for g in row.groups.all()]
        return chips([*(["superuser"] if row.is_superuser else []), *names], "none: sees nothing")


@admin.register(Group)
class PeopleGroupAdmin(BrowseAdmin):
    """The groups and what each may; they come with `migrate` and are not edited here."""

    list_display = ("name", "people")
    search_fields = ("name",)
    fields = ("name", "may")
    readonly_fields = fields
    ordering = ("name",)

    def subject_of(self, row: Group) -> str:
        """Groups leave no events."""
        return ""

    def organisation_id_of(self, row: Any) -> int:
        """Of no organisation."""
        return 0

    @column("people")
    def people(self, row: Group) -> SafeString:
        """Who sits there."""
        return chips(row.user_set.order_by("username").values_list("username", flat=True)[:50])

    @column("may")
    def may(self, row: Group) -> SafeString:
        """Its rights."""
        rights = Permission.objects.filter(group=row).select_related("content_type")
        names = [f"{p.content_type.app_label}.{p.codename}" for p in rights]
        return chips(sorted(names))
