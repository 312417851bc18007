"""The preview of a change: what it allows, what it forbids, which invariants it breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop, override

from core.actors import Person
from core.admin.acts import ActingAdmin
from core.admin.contexts import admin_context
from core.decision import Code, Deny
from core.people import record_refused_person
from core.waiting import page_of
from orgchart.admin.fields import PolicyForm
from orgchart.difference_words import all_in_language
from orgchart.editing import changed_values

YES, NO, NOTHING = gettext_noop("yes"), gettext_noop("no"), gettext_noop("none")
CONFIRM, BACK = "_confirm", "_edit"
OWN_BUTTONS = frozenset({"csrfmiddlewaretoken", CONFIRM, BACK, "_save", "_continue", "_addanother"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One requested change: previewed first, saved when confirmed."""

    row: Any
    person: Person
    data: Mapping[str, Any]
    form: PolicyForm | None
    now: datetime


class PreviewingAdmin(ActingAdmin):
    """A table whose changes are shown before they count."""

    def _changed_values(self, change: RowChange) -> list[tuple[str, Any, Any]]:
        """The columns with their values before and after, in English: a proposal keeps them."""
        columns = {f.name for f in self.opts.concrete_fields}
        names = [n for n in change.form.touched() if n in columns] if change.form else []
        found = changed_values(change.row, names)
        if change.row.pk is None:
            found = [(name, before, now) for name, before, now in found if now]
        return [(self._english_name(n), _shown(before), _shown(now)) for n, before, now in found]

    def _english_name(self, column: str) -> str:
        with override(None):
            return str(self.opts.get_field(column).verbose_name)

    def _refused(
        self, request: HttpRequest, change: RowChange, deny: Deny, *, removal: bool
    ) -> HttpResponse:
        """The page that says why not, with every broken invariant and how to correct it."""
        record_refused_person(
            request,
            deny,
            subject=self.subject_of(change.row),
            organisation_id=change.person.organisation_id,
            now=change.now,
        )
        return self._preview_page(request, change, removal=removal, deny=deny)

    def _preview_page(
        self, request: HttpRequest, change: RowChange, *, removal: bool, **shown: Any
    ) -> HttpResponse:
        deny: Deny | None = shown.get("deny")
        title = gettext("Delete?") if removal else gettext("What this change does")
        context = admin_context(self, request, title, subtitle=str(change.row)) | {
            "object": change.row if change.row.pk else None,
            "removal": removal,
            "posted": [
                (k, v) for k, vs in request.POST.lists() for v in vs if k not in OWN_BUTTONS
            ],
            "stale": deny is not None and deny.code is Code.VERSION_MISMATCH,
            "reason": change.data["reason"],
            "fresh": request.get_full_path(),
            "list_url": self._list_url(),
            **shown,
            "changed": changed_in_language(shown.get("changed", ())),
            **(facts_in_language(shown["seen"]) if "seen" in shown else {}),
        }
        status = 409 if context["stale"] else 422 if deny else 200
        return TemplateResponse(request, "admin/nexus/preview.html", context, status=status)

    def _ask_removal(self, request: HttpRequest, row: Any, form: forms.Form) -> HttpResponse:
        context = admin_context(
            self,
            request,
            gettext("Delete %(object)s") % {"object": self.opts.verbose_name},
            subtitle=str(row),
            object=row,
            form=form,
            media=self.media + form.media,
            back=self._row_url(row),
        )
        return TemplateResponse(request, "admin/nexus/removal.html", context)

    def _list_url(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")

    def _row_url(self, row: Any) -> str:
        return page_of(row)

    def _to_row(self, row: Any) -> HttpResponse:
        return HttpResponseRedirect(self._row_url(row))


def changed_in_language(
    changed: Iterable[tuple[str, Any, Any]],
) -> list[tuple[str, str, str]]:
    """Columns with their values before and after, as the person reads them."""
    return [(gettext(name), _read(before), _read(now)) for name, before, now in changed]


def facts_in_language(seen: Any) -> dict[str, list[str]]:
    """What a previewed change allows and forbids, as the person reads it."""
    difference = seen.difference
    return {
        "newly_allowed": all_in_language(difference.allowed),
        "newly_forbidden": all_in_language(difference.forbidden),
    }


def _read(value: Any) -> str:
    return gettext(value) if value in (YES, NO, NOTHING) else str(value)


def _shown(value: Any) -> str:
    """A column's value as a person reads it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return YES if value else NO
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or NOTHING
    if isinstance(value, dict):
        return ", ".join(f"{k} = {_shown(v)}" for k, v in sorted(value.items())) or NOTHING
    return str(value) or "–"
