"""Editing the organisation: what a form would permit and forbid is shown before it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import helpers
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from unfold.forms import AdminForm, Fieldline

from core.admin.contexts import admin_context
from core.database import database_now
from core.decision import Denied
from core.people import person
from core.waiting import page_of
from orgchart.admin.choosing import (
    choose_organisation,
    chosen_organisation,
    redirect_to_organisation,
)
from orgchart.admin.fields import PolicyForm, ReasonedForm
from orgchart.admin.preview import BACK, CONFIRM, PreviewingAdmin, RowChange
from orgchart.editing import subject_of
from orgchart.models import Organisation
from orgchart.second_person.edits import Edit, apply_edit, deleting, saving, words_told
from orgchart.second_person.services import propose_change, waiting_sentence
from orgchart.services import PolicyChange, SecondPersonNeeded


class EditAdmin(PreviewingAdmin):
    """A table of the policy that people with the right edit: form, preview, confirmation, service.

    `save_model` and its siblings are never reached: the forms are answered here, and what writes is
    the organisation's own service, in one transaction with its event.
    """

    edit_fieldsets: Any = ()
    view_fieldsets: Any = ()
    fixed: tuple[str, ...] = ()
    form = PolicyForm
    change_form_template = "admin/nexus/edit.html"

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """By the group's right."""
        return self._has(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """By the group's right."""
        return self._has(request, "change")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """By the group's right."""
        return self._has(request, "delete")

    def _has(self, request: HttpRequest, verb: str) -> bool:
        name = f"{self.opts.app_label}.{verb}_{self.opts.model_name}"
        return bool(request.user.has_perm(name))

    def subject_of(self, row: Any) -> str:
        """How the ledger names the row."""
        return subject_of(row)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The form for who may change, the plain columns for who may look."""
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return self.edit_fieldsets if may else self.view_fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """What names a row never changes: other rows and the ledger know it by that."""
        return (*self.readonly_fields, *(self.fixed if obj is not None else ()))

    def edit_of(self, change: RowChange) -> Edit:
        """What the form writes, as data."""
        return saving(change.row, change.form.links() if change.form else {})

    def apply(self, change: RowChange, edit: Edit, *, preview: bool) -> PolicyChange:
        """Pass the edit to the service of its table. Raises Denied."""
        return apply_edit(
            edit,
            organisation_id=change.person.organisation_id,
            caller=change.person,
            now=change.now,
            reason=change.data["reason"],
            expected_version=change.data["seen_version"],
            preview=preview,
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """GET shows the form; POST shows what it would do, and does it when that was confirmed."""
        _dress()
        if request.method == "POST":
            row = self.get_object(request, unquote(object_id)) if object_id else None
            if object_id and row is None and self.has_view_permission(request):
                return self.gone(request, object_id)
            allowed = self.has_change_permission if object_id else self.has_add_permission
            if not allowed(request):
                raise PermissionDenied
            return self._posted(request, row)
        if object_id is None and self.has_add_permission(request):
            organisation = chosen_organisation(request)
            if organisation is None:
                return self._choose_organisation(request)
            if (there := redirect_to_organisation(request, organisation)) is not None:
                return there
        extra = {"show_save_and_continue": False, "show_save_and_add_another": False}
        page: HttpResponse = super().changeform_view(
            request, object_id, form_url, {**(extra_context or {}), **extra}
        )
        return page

    def _choose_organisation(self, request: HttpRequest) -> HttpResponse:
        title = gettext("Add %(name)s") % {"name": self.opts.verbose_name}
        return choose_organisation(request, admin_context(self, request, title))

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002  Django's own signature
        **kwargs: Any,
    ) -> type[PolicyForm]:
        """The form of the organisation; without the right to change, plain columns."""
        if not (self.has_change_permission(request, obj) if obj else True):
            kwargs["form"] = forms.ModelForm
            form: type[PolicyForm] = super().get_form(request, obj, change, **kwargs)
            return form
        made: type[PolicyForm] = super().get_form(request, obj, change, **kwargs)
        organisation = self._organisation_of(obj) if obj else chosen_organisation(request)
        return type(made.__name__, (made,), {"organisation": organisation})

    def _organisation_of(self, row: Any) -> Organisation:
        return Organisation.objects.get(id=self.organisation_id_of(row))

    def _bound(self, request: HttpRequest, row: Any) -> PolicyForm:
        fields = flatten_fieldsets(self.get_fieldsets(request, row))
        made = self.get_form(request, row, change=row is not None, fields=fields)
        return made(request.POST, instance=row)

    def _posted(self, request: HttpRequest, row: Any) -> HttpResponse:
        if row is None and chosen_organisation(request) is None:
            return self._choose_organisation(request)
        form = self._bound(request, row)
        if not form.is_valid() or BACK in request.POST:
            return self._form_again(request, row, form)
        change = self._change(request, form.instance, form.cleaned_data, form)
        if CONFIRM not in request.POST:
            return self._preview(request, change, removal=False)
        return self._carry_out(request, change, self.edit_of(change), removal=False)

    def _carry_out(
        self, request: HttpRequest, change: RowChange, edit: Edit, *, removal: bool
    ) -> HttpResponse:
        """Apply the edit, or propose it where a second person must confirm it."""
        shown = [] if removal else self._changed_values(change)
        try:
            try:
                done = self.apply(change, edit, preview=False)
            except SecondPersonNeeded:
                return self._propose(request, change, edit, shown)
        except Denied as refusal:
            return self._refused(request, change, refusal.deny, removal=removal)
        self.message_user(request, _said(change.row, done, removal=removal), messages.SUCCESS)
        if removal or edit.key is None:
            return HttpResponseRedirect(self._list_url())
        return self._to_row(change.row)

    def _propose(
        self,
        request: HttpRequest,
        change: RowChange,
        edit: Edit,
        shown: list[tuple[str, str, str]],
    ) -> HttpResponse:
        """Keep the edit for a second person. Raises Denied."""
        pending = propose_change(
            edit=edit,
            caller=change.person,
            now=change.now,
            reason=change.data["reason"],
            expected_version=change.data["seen_version"],
            shown=shown,
        )
        self.message_user(request, waiting_sentence(pending), messages.WARNING)
        return HttpResponseRedirect(page_of(pending))

    def _change(
        self, request: HttpRequest, row: Any, data: Mapping[str, Any], form: PolicyForm | None
    ) -> RowChange:
        who = person(request, self.organisation_id_of(row), data["seen_version"])
        return RowChange(
            row=row,
            person=replace(who, contract=data.get("contract", "")),
            data=data,
            form=form,
            now=database_now(),
        )

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """GET asks for a reason and shows the effect; POST takes the row away by the service."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_delete_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self.gone(request, object_id)
        version = self._organisation_of(row).policy_version
        form = ReasonedForm(request.POST or None, initial={"seen_version": version})
        if request.method != "POST" or not form.is_valid():
            return self._ask_removal(request, row, form)
        change = self._change(request, row, form.cleaned_data, None)
        if CONFIRM not in request.POST:
            return self._preview(request, change, removal=True)
        return self._carry_out(request, change, deleting(row), removal=True)

    def _preview(
        self, request: HttpRequest, change: RowChange, *, removal: bool, edit: Edit | None = None
    ) -> HttpResponse:
        """What would become allowed and forbidden, worked out by doing it and rolling it back."""
        changed = [] if removal else self._changed_values(change)
        if edit is None:
            edit = deleting(change.row) if removal else self.edit_of(change)
        try:
            seen = self.apply(change, edit, preview=True)
        except Denied as refusal:
            return self._preview_page(request, change, removal=removal, deny=refusal.deny)
        shown = [*changed, *words_told(edit, seen)]  # the only member of a Board confirms it here
        return self._preview_page(request, change, removal=removal, seen=seen, changed=shown)

    def _form_again(self, request: HttpRequest, row: Any, form: PolicyForm) -> HttpResponse:
        """The form as it was filled in, with what is wrong with it."""
        readonly = self.get_readonly_fields(request, row)
        admin_form = AdminForm(
            form, list(self.get_fieldsets(request, row)), {}, readonly, model_admin=self
        )
        title = gettext("Change %(name)s") if row else gettext("Add %(name)s")
        context = admin_context(self, request, title % {"name": self.opts.verbose_name}) | {
            "subtitle": str(row) if row else None,
            "adminform": admin_form,
            "object_id": row and row.pk,
            "original": row,
            "is_popup": False,
            "media": self.media + admin_form.media,
            "inline_admin_formsets": [],
            "errors": helpers.AdminErrorList(form, []),
            "preserved_filters": self.get_preserved_filters(request),
            "show_save_and_continue": False,
            "show_save_and_add_another": False,
        }
        page: HttpResponse = self.render_change_form(
            request, context, add=row is None, change=row is not None, obj=row
        )
        return page


def _dress() -> None:
    """Let Django's helpers make the theme's forms, as the theme itself does before each form."""
    setattr(helpers, "AdminForm", AdminForm)  # noqa: B010  a class of Django's, replaced
    setattr(helpers, "Fieldline", Fieldline)  # noqa: B010  a class of Django's, replaced


def _said(row: Any, done: PolicyChange, *, removal: bool) -> str:
    difference = done.difference
    said = gettext("%(row)s deleted.") if removal else gettext("%(row)s saved.")
    if difference.is_empty:
        effect = gettext("No agent's permissions changed. Policy version %(version)s.")
    else:
        effect = gettext(
            "%(allowed)s newly allowed, %(forbidden)s newly forbidden. Policy version %(version)s."
        )
    return f"{said} {effect}" % {
        "row": row,
        "allowed": len(difference.allowed),
        "forbidden": len(difference.forbidden),
        "version": done.after.version,
    }
