"""Actions of people on a row: each has a page of its own that asks for a reason first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextareaWidget

from core.actors import Person
from core.admin.base import BrowseAdmin
from core.admin.contexts import admin_context
from core.admin.once import OnceForm, SentBefore, make_once
from core.admin.refused import refuse_on_form
from core.database import database_now
from core.decision import Denied
from core.hooks import Hook
from core.labels import Text
from core.people import person, signed_in
from core.permissions import Deed
from core.waiting import page_of

SEEN_IS_MISSING = {
    "required": _("The version you looked at is missing. Open this page again."),
}
"""The messages of a hidden field that says what a form was read at."""


class ReasonForm(forms.Form):
    """Why, and the version that was looked at."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_("Kept in the ledger with your name."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, error_messages=SEEN_IS_MISSING)


class FileForm(ReasonForm):
    """Why, and the SHA-256 of the file that was read."""

    version = None  # type: ignore[assignment]  # a file is known by what it holds
    digest = forms.RegexField(r"^[0-9a-f]{64}\Z", widget=forms.HiddenInput)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRequest:
    """One act about to be carried out."""

    row: Any
    person: Person
    data: Mapping[str, Any]
    now: datetime

    @property
    def reason(self) -> str:
        """Why."""
        return str(self.data["reason"])

    @property
    def version(self) -> int | None:
        """The version of what the person looked at."""
        return self.data.get("version")

    @property
    def digest(self) -> str:
        """The digest of what the person looked at, where that is a file."""
        return str(self.data.get("digest", ""))


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """An answer that may be seen on the next page and never again: it is stored nowhere."""

    title: str
    secret: str
    remark: Text


Answer = str | ShownOnce


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One action on a row, and the service that does it.

    The deed's permission is checked by the page and, with the reason, by the service. `possible`
    says whether the row is in a state for it, so that the button is shown only when it works, and
    `is_for` whether the person of that name is one who may do it to this row.
    `title` names one of several actions of the same deed, `button` what its form's button says
    where that only leads on to a preview.
    """

    name: str
    deed: Deed
    explanation: Text
    perform: Callable[[ActRequest], Answer]
    title: Text = ""
    button: Text = ""
    icon: str = "gavel"
    danger: bool = False
    form: type[forms.Form] = ReasonForm
    possible: Callable[[Any], bool] = lambda _row: True
    is_for: Callable[[str, Any], bool] = lambda _username, _row: True
    version: Callable[[Any], int | str | None] = lambda _row: None
    facts: Callable[[Any], list[tuple[str, str]]] = lambda _row: []
    text: Callable[[Any], str] = lambda _row: ""
    initial: Callable[[Any], Mapping[str, Any]] = lambda _row: {}

    @property
    def permission(self) -> str:
        """The Django permission that the page checks."""
        return self.deed.permission

    @property
    def label(self) -> str:
        """What the button says."""
        return str(self.title) or gettext(self.deed.value.title)


acts_for = Hook[[type[Model]], Sequence[Act]]("actions that rooms above add to a table's pages")


class ActPages(ModelAdmin):
    """Actions on the rows of a table: a button for each possible one; GET asks, POST acts."""

    acts: tuple[Act, ...] = ()
    organisation_id_of = BrowseAdmin.organisation_id_of
    subject = BrowseAdmin.subject
    subject_of = BrowseAdmin.subject_of
    gone = BrowseAdmin.gone

    def all_acts(self) -> list[Act]:
        """The table's own actions, and those that rooms above add."""
        return [*self.acts, *(act for acts in acts_for(self.model) for act in acts)]

    def get_urls(self) -> list[URLPattern]:
        """One address for each act, before Django's own catch-all."""
        own = [
            path(
                f"<path:object_id>/{act.name}/",
                self.admin_site.admin_view(partial(self.act_view, act=act)),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{act.name}",
            )
            for act in self.all_acts()
        ]
        return [*own, *super().get_urls()]

    def act_view(self, request: HttpRequest, object_id: str, *, act: Act) -> HttpResponse:
        """Ask for the reason; on POST call the service, and say what it answered."""
        row = self.get_object(request, unquote(object_id))
        if not (request.user.has_perm(act.permission) and self.has_view_permission(request, row)):
            raise PermissionDenied(act.permission)
        if row is None:
            return self.gone(request, object_id)
        if not self._is_member(request, row):
            raise PermissionDenied(act.permission)
        if request.method == "POST":
            form = act.form(request.POST)
            if act.version(row) is None:
                form.fields.pop("version", None)
            if form.is_valid():
                done = self._done(request, act, row, form)
                if done is not None:
                    return done
        else:
            seen = act.version(row)
            form = act.form(initial={"version": seen, "digest": seen, **act.initial(row)})
        return self._act_page(request, act, row, form)

    def _is_member(self, request: HttpRequest, row: Any) -> bool:
        return signed_in(request).is_member_of(self.organisation_id_of(row))

    def _done(
        self, request: HttpRequest, act: Act, row: Any, form: forms.Form
    ) -> HttpResponse | None:
        """Act and answer; None with the refusal on the form. A new thing is made once."""
        if isinstance(form, OnceForm):
            try:
                answer = make_once(request, form, lambda: self._acted(request, act, row, form))
            except SentBefore:
                return HttpResponseRedirect(page_of(row))
        else:
            answer = self._acted(request, act, row, form)
        return None if answer is None else self._answered(request, act, row, answer)

    def _acted(self, request: HttpRequest, act: Act, row: Any, form: forms.Form) -> Answer | None:
        """The service's answer, or None with the refusal on the form and in the ledger."""
        now = database_now()
        organisation_id = self.organisation_id_of(row)
        call = ActRequest(
            row=row, person=person(request, organisation_id), data=form.cleaned_data, now=now
        )
        try:
            return act.perform(call)
        except Denied as refusal:
            refuse_on_form(
                request,
                form,
                refusal.deny,
                subject=self.subject_of(row),
                organisation_id=organisation_id or None,
                now=now,
            )
            return None

    def _answered(self, request: HttpRequest, act: Act, row: Any, answer: Answer) -> HttpResponse:
        back = page_of(row)
        if isinstance(answer, str):
            self.message_user(request, answer, messages.SUCCESS)
            return HttpResponseRedirect(back)
        context = self._act_context(request, act, row) | {"answer": answer, "back": back}
        response = TemplateResponse(request, "admin/nexus/shown_once.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _act_page(self, request: HttpRequest, act: Act, row: Any, form: forms.Form) -> HttpResponse:
        context = self._act_context(request, act, row) | {
            "form": form,
            "possible": act.possible(row) and act.is_for(request.user.get_username(), row),
            "facts": act.facts(row),
            "text": act.text(row),
            "media": self.media + form.media,
            "back": page_of(row),
        }
        return TemplateResponse(request, "admin/nexus/act.html", context)

    def _act_context(self, request: HttpRequest, act: Act, row: Any) -> dict[str, Any]:
        return admin_context(self, request, act.label, subtitle=str(row), act=act, object=row)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,  # noqa: FBT001, FBT002  Django's own signature
        change: bool = False,  # noqa: FBT001, FBT002  Django's own signature
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """With what the row's page shows, and a button for each act that this person can do now."""
        if obj is not None:
            context |= self.row_context(request, obj)
            buttons = self.act_buttons(request, obj)
            context["actions_detail"] = [*(context.get("actions_detail") or []), *buttons]
        page: HttpResponse = super().render_change_form(
            request, context, add, change, form_url, obj
        )
        return page

    def row_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """What the page of a row shows besides its columns."""
        return {}

    def act_buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """The acts as the theme's buttons: plain links to pages that ask first."""
        return [
            {
                "title": act.label,
                "explanation": str(act.explanation),
                "icon": act.icon,
                "variant": ActionVariant.DANGER if act.danger else ActionVariant.DEFAULT,
                "attrs": {},
                "dialog": None,
                "path": page_of(row, act.name),
            }
            for act in self.all_acts()
            if request.user.has_perm(act.permission)
            and self._is_member(request, row)
            and act.possible(row)
            and act.is_for(request.user.get_username(), row)
        ]


class ActingAdmin(ActPages, BrowseAdmin):
    """A table that is only read, with actions on its rows."""
