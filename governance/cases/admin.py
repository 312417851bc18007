"""The humans' face of cases: each as one story; people intervene with a reason and a code."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin
from core.admin.base import BrowseAdmin, choice_column, computed_column
from core.admin.browsing import ListButton
from core.admin.contexts import admin_context
from core.admin.once import SentBefore, make_once
from core.admin.refused import refuse_on_form
from core.database import database_now
from core.decision import Denied, Deny
from core.ids import row_id
from core.people import person, signed_in
from core.permissions import Deed
from core.waiting import page_of
from governance.cases import forms as pages
from governance.cases import store
from governance.cases.actions import ACTS, STEERINGS, Steering, effect_of, purpose_of_act
from governance.cases.by_people import rules, services
from governance.cases.models import Case, Violation
from governance.cases.records import facts_of
from governance.cases.timeline import timeline_of
from governance.cases.turns import next_holders
from governance.cases.verification import verify_case
from governance.cases.vocabulary import State
from governance.cases.wording import (
    case_words,
    next_step,
    round_shown,
    stages_of,
    vacant_step,
)
from governance.interventions import confirmation_codes
from orgchart.admin.choosing import redirect_to_organisation
from orgchart.models import Organisation
from orgchart.people.members import visible_agents, visible_organisations
from orgchart.policy_cache import current_policy

COLOURS = {"open": "info", "paused": "warning", "delivered": "success", "stopped": "danger"}


@admin.register(Case)
class CaseAdmin(ActingAdmin):
    """Cases of the constitution, paused ones first in mind."""

    acts = ACTS
    change_form_template = "admin/nexus/case.html"
    list_buttons = (
        ListButton(
            title=_("Open case"),
            icon="add",
            page="governance_case_open",
            may=lambda request: request.user.has_perm(Deed.OPEN_CASE.permission),
        ),
    )
    related = ("organisation",)
    list_display = ("headline", "state_label", "stage", "round", "why_paused", "organisation")
    in_other_words = ("paused_by",)
    list_filter = ("organisation", "state", "stage", "opened_at")
    ordering = ("-id",)
    dated_by = "opened_at"
    search_fields = ("id__exact",)
    search_help_text = _("A case (CASE-…)")

    why_paused = computed_column(_("paused by"), lambda row: case_words(row.paused_by or "") or "–")

    def open_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for the request; on POST open the case and show it."""
        if not request.user.has_perm(Deed.OPEN_CASE.permission):
            raise PermissionDenied(Deed.OPEN_CASE.permission)
        chosen = row_id(request.GET.get("organisation", ""))
        rows = visible_organisations(signed_in(request))
        rows = rows.filter(roles__offices__contains=["ANALYST"]).distinct()
        rows = rows.order_by("name")
        organisation = (rows if chosen is None else rows.filter(id=chosen)).first()
        if organisation is None:
            raise PermissionDenied("no organisation has the six offices")
        if (there := redirect_to_organisation(request, organisation)) is not None:
            return there
        form = pages.OpenForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            try:
                opened = make_once(request, form, lambda: self._open(request, organisation, form))
            except SentBefore:
                return HttpResponseRedirect(reverse("admin:governance_case_changelist"))
            if opened is not None:
                return opened
        context = admin_context(
            self,
            request,
            gettext("Open case"),
            form=form,
            organisation=organisation,
            organisations=rows,
            media=self.media + form.media,
            subtitle=organisation.name,
            back=reverse("admin:governance_case_changelist"),
        )
        return TemplateResponse(request, "admin/nexus/case_open.html", context)

    def _open(
        self, request: HttpRequest, organisation: Organisation, form: pages.OpenForm
    ) -> HttpResponse | None:
        """Open the case and go to its page; None with the refusal on the form."""
        who = person(request, organisation.id)
        try:
            found = services.open_case_as_person(
                person=who,
                now=database_now(),
                title=form.cleaned_data["title"],
                request=form.cleaned_data["request"],
            )
        except Denied as refusal:
            refuse_on_form(
                request,
                form,
                refusal.deny,
                subject=f"organisation:{organisation.slug}",
                organisation_id=organisation.id,
                now=database_now(),
            )
            return None
        self.message_user(
            request, gettext("%(case)s is open.") % {"case": found["case_id"]}, messages.SUCCESS
        )
        address = reverse("admin:governance_case_change", args=[found["case_id"]])
        return HttpResponseRedirect(address)

    def act_buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """None at the top: the page lists the actions with what each of them does."""
        return []

    def act_view(self, request: HttpRequest, object_id: str, *, act: Act) -> HttpResponse:
        """Show what an action will do before it acts; ask for a code (Spec: constitution 35)."""
        if act.name in STEERINGS and request.method == "POST" and not _confirms(request, act):
            row = self.get_object(request, unquote(object_id))
            allowed = request.user.has_perm(act.permission)
            form = act.form(request.POST)
            if row is not None and allowed and form.is_valid():
                return self._preview(request, act, row, form)
        return super().act_view(request, object_id, act=act)

    def _act_page(self, request: HttpRequest, act: Act, row: Any, form: Any) -> HttpResponse:
        """After a wrong code the preview again; after any other refusal the form."""
        is_filled = form.is_bound and set(form.errors) <= {NON_FIELD_ERRORS}
        confirming = act.name in STEERINGS and is_filled and _confirms(request, act)
        if confirming and form.cleaned_data["version"] == row.version:
            return self._preview(request, act, row, form)
        return super()._act_page(request, act, row, form)

    def _preview(self, request: HttpRequest, act: Act, row: Case, form: Any) -> HttpResponse:
        """The page that says what the action will do; the form where it would be refused."""
        steering, who = STEERINGS[act.name], person(request, row.organisation_id)
        shaped = steering.shape(form.params())
        refusal = _refusal_of(steering, row, shaped, form.cleaned_data["version"])
        if refusal is not None:
            if not form.non_field_errors():
                refuse_on_form(
                    request,
                    form,
                    refusal,
                    subject=self.subject_of(row),
                    organisation_id=row.organisation_id,
                    now=database_now(),
                )
            return super()._act_page(request, act, row, form)
        purpose = purpose_of_act(act.name, row, form.cleaned_data, shaped)
        data = form.data.copy()
        data["token"], data["code"] = confirmation_codes.preview_token(purpose, who), ""
        bound = type(form)(data)
        for each in bound.fields.values():
            each.widget = each.hidden_widget()
        needs_code = rules.needs_code(signed_in(request).groups, steering.action)
        if needs_code:
            bound.fields["code"].widget = pages.CODE
            bound.fields["code"].label = gettext("Confirmation code")
        given = [(bound[name].label, form.data[name]) for name in form.params()]
        context = self._act_context(request, act, row) | {
            "form": bound,
            "problems": form.non_field_errors(),
            "needs_code": needs_code,
            "enrolled": confirmation_codes.has_authenticator(who.username),
            "effect": effect_of(act.name, row, shaped),
            "given": [*given, (gettext("Reason"), form.cleaned_data["reason"])],
            "media": self.media,
            "back": page_of(row),
        }
        return TemplateResponse(request, "admin/nexus/case_confirm.html", context)

    def verify_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Compare the case with its digests and with the seals over its events. Changes nothing."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self.gone(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        context = admin_context(self, request, gettext("Verify case"), subtitle=str(row), case=row)
        if request.method == "POST":
            context["report"] = verify_case(row)
        return TemplateResponse(request, "admin/nexus/case_verify.html", context)

    def row_context(self, request: HttpRequest, row: Case) -> dict[str, Any]:
        """The case as one story."""
        facts = facts_of(row)
        at = facts.at
        policy = current_policy(row.organisation_id)
        is_vacant = at.state is State.OPEN and not next_holders(policy, at, row.id)
        return {
            "case": row,
            "state_colour": COLOURS[row.state],
            "next_step": vacant_step(at) if is_vacant else next_step(at),
            "round_shown": round_shown(facts.at),
            "stages": stages_of(facts),
            "choices": super().act_buttons(request, row),
            "timeline": timeline_of(row, last=row_id(request.GET.get("round", ""))),
        }

    own_pages = (
        ("open/", "governance_case_open", open_view),
        ("<path:object_id>/verify/", "governance_case_verify", verify_view),
    )
    headline = computed_column(_("case"), lambda row: row.title[:70])

    state_label = choice_column("state", _("state"), COLOURS)


def _confirms(request: HttpRequest, act: Act) -> bool:
    """Whether the person confirms the preview, with a code if they need one."""
    if rules.needs_code(signed_in(request).groups, STEERINGS[act.name].action):
        return bool(request.POST.get("code"))
    return "_confirm" in request.POST


def _refusal_of(steering: Steering, row: Case, shaped: dict[str, Any], version: int) -> Deny | None:
    """Why the action would be refused now, before anyone is asked to confirm it."""
    if version != row.version:
        return store.stale_case(row.id)
    decision = steering.can(facts_of(row), shaped)
    return decision if isinstance(decision, Deny) else None


@admin.register(Violation)
class ViolationAdmin(BrowseAdmin):
    """Structural violations, by agent."""

    subject = "case:{row.case_id}"
    list_display = ("at", "agent_name", "fault", "stage", "round", "reason", "case")
    list_filter = ("organisation", "fault", "at")
    list_select_related = ("case",)
    dated_by = "at"
    search_fields = ("case__id",)
    search_help_text = _("An agent or a case (CASE-…)")
    ordering = ("-id",)

    def find(
        self, request: HttpRequest, rows: QuerySet[Violation], term: str
    ) -> QuerySet[Violation]:
        """By case, or by agent: of each organisation that this person sees."""
        who = signed_in(request)
        mine = rows.filter(organisation__in=visible_organisations(who))
        if term.startswith("CASE-"):
            return mine.filter(case=term)
        return mine.filter(agent__in=visible_agents(who, term))
