"""Users; every change is recorded in the ledger."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.contrib.filters.admin import BooleanRadioFilter, RelatedDropdownFilter
from unfold.forms import AdminPasswordChangeForm

from core.actions import Action
from core.admin.acts import ActPages
from core.admin.base import BrowseAdmin, chips, column, computed_column
from core.admin.refused import refused
from core.database import database_now
from core.decision import Allow, Denied
from core.events import Event
from core.people import ADMIN_TOOL, SignedIn, record_refused_person, signed_in
from ledger.services import insert_event
from nexus_site.console.second_factor import REMOVE_SECOND_FACTOR
from nexus_site.console.user_forms import PersonChangeForm, PersonCreationForm
from orgchart.models import Membership
from orgchart.people.members import OF_PERSON, set_memberships, standing_of, visible_organisations
from orgchart.people.passwords import give_password
from orgchart.people.rules import can_change_user
from orgchart.second_person.services import waiting_sentence
from orgchart.second_person.users import change_user, require_password_change

admin.site.unregister(User)
admin.site.unregister(TOTPDevice)  # its pages show secrets; people enrol on a page of our own

OF_RIGHTS = frozenset(("is_active", "is_staff", "groups", "every_organisation", "organisations"))
"""The fields of a user's form that give rights."""


def record_person(request: HttpRequest, person: User, action: Action, remark: str) -> None:
    """One event of a change of who the people are, in the transaction of that change."""
    who = signed_in(request)
    insert_event(
        Event(
            action=action,
            actor=f"human:{who.username}",
            at=database_now(),
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
class PersonAdmin(DjangoUserAdmin, ActPages):  # type: ignore[type-arg]  # only in its stubs
    """People, their groups and organisations. Only the Board sees and changes them.

    A member of the Board sees the members of its organisations, and changes those who are in no
    other one (Spec: people 36). Only a superuser changes a superuser. What gives rights waits for
    another member of the Board (Spec: people 42).
    """

    form = PersonChangeForm
    add_form = PersonCreationForm
    change_password_form = AdminPasswordChangeForm
    actions = None
    acts = (REMOVE_SECOND_FACTOR,)
    list_display = (
        "username",
        "name",
        "group_names",
        "organisations",
        "is_active",
        "is_staff",
        "last_login",
    )
    list_filter = (
        ("groups", RelatedDropdownFilter),
        ("is_active", BooleanRadioFilter),
        ("is_staff", BooleanRadioFilter),
    )
    list_filter_submit = True
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Person"), {"fields": OF_PERSON}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "groups")}),
        (_("Organisations"), {"fields": ("every_organisation", "organisations")}),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "usable_password", "password1", "password2")}),
        (_("Rights"), {"fields": ("is_staff", "groups")}),
        (_("Organisations"), {"fields": ("every_organisation", "organisations")}),
    )

    history_view = BrowseAdmin.history_view

    def subject_of(self, row: User) -> str:
        """How the ledger names them."""
        return f"human:{row.get_username()}"

    def organisation_id_of(self, row: User) -> int:
        """Of no organisation."""
        return 0

    def _is_member(self, request: HttpRequest, row: User) -> bool:
        """Who may change the user at all."""
        return _may_change(request, row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """With the groups, and with the memberships that this person sees."""
        rows: QuerySet[User] = super().get_queryset(request)
        mine = visible_organisations(signed_in(request))
        seen = Membership.objects.filter(Q(organisation=None) | Q(organisation__in=mine))
        memberships = Prefetch("memberships", seen.select_related("organisation"))
        return rows.prefetch_related("groups", memberships)

    def rows_of(self, rows: QuerySet[User], who: SignedIn) -> QuerySet[User]:
        """The members of the person's organisations."""
        mine = Membership.objects.filter(organisation__in=who.organisations or ())
        return rows.filter(pk__in=mine.values("person"))

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """By right; a superuser by superusers only, others by who sees all their organisations."""
        if obj is not None and not _may_change(request, obj):
            return False
        return bool(super().has_change_permission(request, obj))

    def get_form(
        self,
        request: HttpRequest,
        obj: User | None = None,
        change: bool = False,  # noqa: FBT001, FBT002  Django's own signature
        **kwargs: Any,
    ) -> Any:
        """The form, with the person who fills it in."""
        made = super().get_form(request, obj, change=change, **kwargs)
        return type(made.__name__, (made,), {"who": signed_in(request)})

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The form; a refused change leads back to it, and nothing is saved."""
        try:
            answer: HttpResponse = super().changeform_view(
                request, object_id, form_url, extra_context
            )
        except Denied as refusal:
            return self._refused(request, refusal)
        return answer

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """With what the rights were when the form was read, where it changes them."""
        found = super().get_fieldsets(request, obj)
        if obj is None or not self.has_change_permission(request, obj):
            return found
        *others, (title, options) = found
        return (*others, (title, {**options, "fields": (*options["fields"], "seen")}))

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """A name is given once: proposals and the ledger name people by it (Spec: people 45)."""
        return () if obj is None else ("username",)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:  # noqa: FBT001  Django's own signature
        """Save a new user, in no group yet; the service saves what changes of another."""
        form.wanted = form.standing(obj)
        if change:
            obj.is_active, obj.is_staff = form.found.is_active, form.found.is_staff
        else:
            super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:  # noqa: FBT001  Django's own signature
        """Groups and organisations, by the service that knows whether they wait for somebody."""
        who, now = signed_in(request), database_now()
        user, wanted = form.instance, form.wanted
        if not change:  # a membership without a group gives no right, and shows them to the Board
            set_memberships(
                user=user, organisations=wanted.organisations, caller=who.on(0), now=now
            )
        seen = form.cleaned_data["seen"] if change else ""
        form.waits = change_user(user=user, after=wanted, who=who, now=now, seen=seen)
        if form.waits:
            form.changed_data = [name for name in form.changed_data if name not in OF_RIGHTS]
            what = gettext("The change of the rights of %(user)s") % {"user": user}
            self.message_user(request, waiting_sentence(what), messages.WARNING)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """People are made inactive: what they did stays theirs."""
        return False

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002  Django's own name
        form_url: str = "",
    ) -> HttpResponse:
        """The new password and its event in one transaction; its user changes it first.

        One's own is changed with the present one only (Spec: people 53).
        """
        user = self.get_object(request, unquote(id))
        if user is None and self.has_change_permission(request):
            return self.gone(request, id)
        may_change = user is not None and self.has_change_permission(request, user)
        if may_change and user == request.user:
            return HttpResponseRedirect(reverse("admin:password_change"))
        other = user if may_change and request.method == "POST" else None
        try:
            with transaction.atomic():
                if other is not None:
                    require_password_change(user=other, who=signed_in(request))
                answer: HttpResponse = super().user_change_password(request, id, form_url)
                if other is not None and answer.status_code == HTTPStatus.FOUND:
                    give_password(other.pk, by=request.user.get_username())
                return answer
        except Denied as refusal:
            return self._refused(request, refusal)

    def _refused(self, request: HttpRequest, refusal: Denied) -> HttpResponse:
        """Back to the same page, with the reason; the attempt is recorded."""
        subject = f"page:{request.path}"[:200]
        record_refused_person(request, refusal.deny, subject=subject, now=database_now())
        self.message_user(request, refused(refusal.deny), messages.ERROR)
        return HttpResponseRedirect(request.path)

    def log_addition(  # type: ignore[override]  # no LogEntry is made
        self, request: HttpRequest, obj: User, message: Any
    ) -> None:
        """The ledger in place of a log of the admin's own; the password is to be changed."""
        record_person(request, obj, Action.PERSON_ADDED, "")
        give_password(obj.pk, by=request.user.get_username())

    def log_change(  # type: ignore[override]  # no LogEntry is made
        self, request: HttpRequest, obj: User, message: Any
    ) -> None:
        """The ledger in place of a log of the admin's own; nothing of what only waits."""
        if message:
            record_person(request, obj, Action.PERSON_CHANGED, self._what(message))

    def _what(self, message: Any) -> str:
        """Which columns were changed, in words."""
        parts = message if isinstance(message, list) else []
        fields = [name for p in parts for name in p.get("changed", {}).get("fields", [])]
        return ", ".join(str(name) for name in fields) or str(message if not parts else "")

    name = computed_column(_("name"), lambda row: row.get_full_name())

    @column(_("groups"))
    def group_names(self, row: User) -> SafeString:
        """Board, HR, Reviewer, Observer."""
        names = [gettext(group.name) for group in row.groups.all()]
        return chips(
            [*([gettext("superuser")] if row.is_superuser else []), *names],
            gettext("none: sees nothing"),
        )

    @column(_("organisations"))
    def organisations(self, row: User) -> SafeString:
        """The organisations that the user sees, of those that the reader sees."""
        names = [
            str(each.organisation or gettext("every organisation"))
            for each in row.memberships.all()
        ]
        return chips(sorted(names), gettext("none: sees nothing"))

    every_organisation = computed_column(
        _("every organisation"),
        lambda row: any(each.organisation_id is None for each in row.memberships.all()),
        boolean=True,
    )


def _may_change(request: HttpRequest, user: User) -> bool:
    """Whether no right of theirs is out of this person's reach: no organisation, no superuser."""
    who, now = signed_in(request), standing_of(user)
    allowed = can_change_user(
        organisations=who.organisations, is_superuser=who.is_superuser, before=now, after=now
    )
    return isinstance(allowed, Allow)
