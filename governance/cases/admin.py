"""The humans' face of cases: each as one story; people intervene with a reason and a code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.enums import ActionVariant

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer
from core.admin.base import BrowseAdmin, column
from core.admin.browsing import MomentFilter
from core.decision import Allow, Decision, Denied, Deny
from core.deeds import Deed
from core.people import person, record_refusal, signed_in
from governance.cases import forms as pages
from governance.cases import store
from governance.cases.models import Artifact, Case, Violation
from governance.cases.rules import FINAL, CaseFacts, Next
from governance.cases.timeline import timeline_of
from governance.cases.vocabulary import Outcome, Stage, State
from governance.interventions import confirmation, rules, services
from governance.interventions.models import Intervention
from governance.interventions.vocabulary import DEED_OF, CaseAction
from orgchart.models import Organisation
from orgchart.people.members import visible_organisations

BY_ORGANISATION = ("organisation", RelatedDropdownFilter)
COLOURS = {"open": "info", "paused": "warning", "delivered": "success", "stopped": "danger"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """One way to steer a case: its service, whether it is possible, and where it leads."""

    action: CaseAction
    serve: Callable[..., Any]
    shape: Callable[[dict[str, Any]], dict[str, Any]]
    can: Callable[[CaseFacts, Mapping[str, Any]], Decision]
    after: Callable[[CaseFacts, Mapping[str, Any]], Next]


def _amending(stage: Stage, action: CaseAction) -> Steering:
    return Steering(
        action=action,
        serve=services.amend_case,
        shape=lambda params: {"stage": stage, "content": params},
        can=lambda case, _: rules.can_amend(case, stage),
        after=lambda case, _: rules.after_amendment(case, stage),
    )


STEERINGS: Mapping[str, Steering] = {
    "amend-analysis": _amending(Stage.ANALYSIS, CaseAction.AMEND_ANALYSIS),
    "amend-tasks": _amending(Stage.TASKS, CaseAction.AMEND_TASKS),
    "overrule": Steering(
        action=CaseAction.OVERRULE_REVIEW,
        serve=services.overrule_review,
        shape=lambda params: {"outcome": Outcome(params["outcome"])},
        can=lambda case, params: rules.can_overrule(case, params["outcome"]),
        after=lambda case, params: rules.after_overruling(case.at, params["outcome"]),
    ),
    "extend": Steering(
        action=CaseAction.EXTEND_ROUNDS,
        serve=services.extend_case,
        shape=lambda params: params,
        can=lambda case, params: rules.can_extend(case.at, params["rounds"]),
        after=lambda case, params: rules.after_extension(case.at, params["rounds"]),
    ),
    "end": Steering(
        action=CaseAction.END,
        serve=services.end_case,
        shape=lambda params: params,
        can=lambda case, _: rules.can_end(case.at),
        after=lambda case, _: rules.after_end(case.at),
    ),
}


def _steer(name: str, form: type[pages.CaseForm]) -> Callable[[ActRequest], Answer]:
    def perform(call: ActRequest) -> Answer:
        steering, groups = STEERINGS[name], services.all_groups(call.person)
        given = _params(form, call.data)
        shaped = steering.shape(given)
        confirmed = None
        if rules.needs_code(groups, steering.action):
            confirmed = confirmation.confirm(
                token=str(call.data["token"]),
                code=str(call.data["code"]),
                purpose=_purpose(name, call.row.id, call.data, shaped),
                person=call.person,
                now=call.now,
            )
        steering.serve(
            case_id=call.row.id,
            reason=call.reason,
            expected_version=call.data["version"],
            person=call.person,
            now=call.now,
            confirmed=confirmed,
            **shaped,
        )
        return f"{call.row.id}: {steering.action.value.replace('_', ' ')} is done."

    return perform


def _params(form: type[pages.CaseForm], data: Mapping[str, Any]) -> dict[str, Any]:
    filled = form()
    filled.cleaned_data = dict(data)
    return filled.params()


def _purpose(
    name: str, case_id: str, data: Mapping[str, Any], shaped: Mapping[str, Any]
) -> confirmation.Purpose:
    params = {key: getattr(value, "value", value) for key, value in shaped.items()}
    return confirmation.purpose_of(
        STEERINGS[name].action, case_id, data["version"], {**params, "reason": data["reason"]}
    )


def _act(name: str, form: type[pages.CaseForm], title: str, explanation: str, **more: Any) -> Act:
    return Act(
        name=name,
        title=title,
        explanation=explanation,
        deed=DEED_OF[STEERINGS[name].action],
        form=form,
        perform=_steer(name, form),
        version=lambda row: int(row.version),
        facts=_facts,
        **more,
    )


def _facts(row: Case) -> list[tuple[str, str]]:
    waits = [("Waits because of", row.paused_by)] if row.paused_by else []
    return [
        ("Title", row.title),
        ("State", f"{row.state} at {row.stage}"),
        ("Round", f"{row.round} of {row.max_rounds}"),
        *waits,
    ]


def _can_be(name: str, **params: Any) -> Callable[[Case], bool]:
    return lambda row: isinstance(STEERINGS[name].can(store.facts_of(row), params), Allow)


def _note(call: ActRequest) -> Answer:
    services.add_note(case_id=call.row.id, note=call.reason, person=call.person, now=call.now)
    return "The note is kept."


def _current(stage: Stage) -> Callable[[Case], str]:
    """The content that the form amends, shown next to it."""

    def shown(row: Case) -> str:
        rows = Artifact.objects.filter(case_id=row.id, stage=stage).order_by("-number")
        content = rows.values_list("content", flat=True).first() or {}
        if stage is Stage.TASKS:
            tasks = content.get("tasks", [])
            return "\n".join(f"{t['id']} | {t['task']} | {t['verify_by']}" for t in tasks)
        return "\n\n".join(f"{name}: {value}" for name, value in content.items())

    return shown


ACTS = (
    _act(
        "amend-analysis",
        pages.AmendAnalysisForm,
        "Amend ANALYSIS",
        "Your version takes the place of the ANALYSIS; the original stays. TASKS run again.",
        icon="edit_note",
        possible=_can_be("amend-analysis"),
        text=_current(Stage.ANALYSIS),
    ),
    _act(
        "amend-tasks",
        pages.AmendTasksForm,
        "Amend TASKS",
        "Your version takes the place of the TASKS; the original stays. IMPLEMENTATION runs again.",
        icon="checklist",
        possible=_can_be("amend-tasks"),
        text=_current(Stage.TASKS),
    ),
    _act(
        "overrule",
        pages.OverruleForm,
        "Overrule REVIEW",
        "The REVIEW stays as it was given and the record shows both. TEST still follows.",
        icon="balance",
        danger=True,
        possible=lambda row: any(
            _can_be("overrule", outcome=o)(row) for o in (Outcome.APPROVED, Outcome.REJECTED)
        ),
    ),
    _act(
        "extend",
        pages.ExtendForm,
        "Extend rounds",
        "The pause is lifted. The CONDUCTOR rules whether the case goes on.",
        icon="more_time",
        possible=lambda row: row.state == State.PAUSED and row.paused_by != "NON_VERIFIABLE",
    ),
    _act(
        "end",
        pages.CaseForm,
        "End case",
        "The case stops where it is and cannot be opened again.",
        icon="stop_circle",
        danger=True,
        possible=lambda row: row.state not in FINAL,
    ),
    Act(
        name="note",
        title="Add note",
        icon="sticky_note_2",
        deed=Deed.ADD_NOTE,
        explanation="Adds context for people. It changes nothing in the case.",
        form=pages.NoteForm,
        perform=_note,
        facts=_facts,
    ),
)


@admin.register(Case)
class CaseAdmin(ActingAdmin):
    """Cases of the constitution, paused ones first in mind."""

    acts = ACTS
    change_form_template = "admin/nexus/case.html"
    list_display = ("headline", "state_label", "stage", "round", "paused_by", "organisation")
    list_filter = (
        BY_ORGANISATION,
        ("state", ChoicesDropdownFilter),
        ("stage", ChoicesDropdownFilter),
        ("opened_at", MomentFilter),
    )
    list_select_related = ("organisation",)
    ordering = ("-id",)
    search_fields = ("=id",)
    search_help_text = "A case (CASE-…)"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Case]:
        """With the organisation, in one query."""
        rows: QuerySet[Case] = super().get_queryset(request)
        return rows.select_related("organisation")

    def get_urls(self) -> list[URLPattern]:
        """And the page on which the Board opens a case."""
        page = self.admin_site.admin_view(self.open_view)
        return [path("open/", page, name="governance_case_open"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with the way to open a case."""
        page = super().changelist_view(request, extra_context)
        if request.user.has_perm(Deed.OPEN_CASE.permission) and hasattr(page, "context_data"):
            button = {
                "title": "Open case",
                "icon": "add",
                "variant": ActionVariant.PRIMARY,
                "attrs": {},
                "path": reverse("admin:governance_case_open"),
            }
            page.context_data["actions_list"] = [
                *(page.context_data.get("actions_list") or []),
                button,
            ]
        answer: HttpResponse = page
        return answer

    def open_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for the request; on POST open the case and show it."""
        if not request.user.has_perm(Deed.OPEN_CASE.permission):
            raise PermissionDenied(Deed.OPEN_CASE.permission)
        request.current_app = self.admin_site.name
        context = {**self.admin_site.each_context(request), "title": "Open case", "opts": self.opts}
        chosen = request.GET.get("organisation", "")
        rows = visible_organisations(signed_in(request))
        rows = rows.filter(roles__offices__contains=["ANALYST"]).distinct()
        rows = rows.order_by("name")
        organisation = (
            rows.filter(id=int(chosen)).first()
            if chosen.isascii() and chosen.isdigit() and len(chosen) < 18
            else rows.first()
        )
        if organisation is None:
            raise PermissionDenied("no organisation has the six offices")
        form = pages.OpenForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            opened = self._open(request, organisation, form)
            if opened is not None:
                return opened
        context |= {
            "form": form,
            "organisation": organisation,
            "organisations": rows,
            "media": self.media + form.media,
            "subtitle": organisation.name,
            "back": reverse("admin:governance_case_changelist"),
        }
        return TemplateResponse(request, "admin/nexus/case_open.html", context)

    def _open(
        self, request: HttpRequest, organisation: Organisation, form: pages.OpenForm
    ) -> HttpResponse | None:
        """Open the case and go to its page; None with the refusal on the form."""
        who = person(request, organisation.id)
        try:
            found = services.open_case_as_person(
                person=who, now=timezone.now(), **form.cleaned_data
            )
        except Denied as refusal:
            record_refusal(
                who=signed_in(request),
                deny=refusal.deny,
                subject=f"organisation:{organisation.slug}",
                organisation_id=organisation.id,
                now=timezone.now(),
            )
            form.add_error(None, refusal.deny.sentence)
            return None
        self.message_user(request, f"{found['case_id']} is open.", messages.SUCCESS)
        address = reverse("admin:governance_case_change", args=[found["case_id"]])
        return HttpResponseRedirect(address)

    def act_view(self, request: HttpRequest, object_id: str, *, act: Act) -> HttpResponse:
        """Show what an action will do and ask for the code, where one is needed, before it acts."""
        steering = STEERINGS.get(act.name)
        groups = signed_in(request).groups
        asked = request.method == "POST" and not request.POST.get("code")
        if steering and asked and rules.needs_code(groups, steering.action):
            row = self.get_object(request, unquote(object_id))
            allowed = request.user.has_perm(act.permission)
            form = act.form(request.POST)
            if row is not None and allowed and form.is_valid():
                return self._preview(request, act, row, form)
        return super().act_view(request, object_id, act=act)

    def _preview(self, request: HttpRequest, act: Act, row: Case, form: Any) -> HttpResponse:
        steering, who = STEERINGS[act.name], person(request, row.organisation_id)
        shaped = steering.shape(form.params())
        facts = store.facts_of(row)
        decision = steering.can(facts, shaped)
        if isinstance(decision, Deny) or form.cleaned_data["version"] != row.version:
            refusal = decision if isinstance(decision, Deny) else store.stale_case(row.id)
            self._record(request, row, refusal)
            form.add_error(None, refusal.sentence)
            return self._act_page(request, act, row, form)
        purpose = _purpose(act.name, row.id, form.cleaned_data, shaped)
        data = form.data.copy()
        data["token"] = confirmation.preview_token(purpose, who)
        to = steering.after(facts, shaped).at
        bound = type(form)(data)
        for each in bound.fields.values():
            each.widget = each.hidden_widget()
        bound.fields["code"].widget = pages.CODE
        bound.fields["code"].label = "Confirmation code"
        context = self._act_context(request, act, row) | {
            "form": bound,
            "enrolled": confirmation.has_authenticator(who.username),
            "effect": [
                ("State", f"{row.state} → {to.state}"),
                ("Stage", f"{row.stage} → {to.stage}"),
                ("Round", f"{row.round} of {row.max_rounds} → {to.round} of {to.max_rounds}"),
                ("Reason", form.cleaned_data["reason"]),
            ],
            "media": self.media,
            "back": reverse("admin:governance_case_change", args=[quote(row.pk)]),
        }
        return TemplateResponse(request, "admin/nexus/case_confirm.html", context)

    def _record(self, request: HttpRequest, row: Case, refusal: Deny) -> None:
        record_refusal(
            who=signed_in(request),
            deny=refusal,
            subject=self.subject_of(row),
            organisation_id=row.organisation_id,
            now=timezone.now(),
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The case as one story."""
        row: Case = kwargs.get("obj") or context["original"]
        context |= {
            "case": row,
            "state_colour": COLOURS[row.state],
            "timeline": timeline_of(row),
        }
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    @column("case")
    def headline(self, row: Case) -> str:
        """The title, cut where a list would break."""
        return row.title[:70]

    @column("state", label=COLOURS)
    def state_label(self, row: Case) -> str:
        """The state, in colour."""
        return str(row.state)


@admin.register(Intervention)
class InterventionAdmin(BrowseAdmin):
    """Every intervention of people, in one table."""

    list_display = (
        "timestamp",
        "operator",
        "operator_role",
        "trigger_condition",
        "action_taken",
        "subject",
        "reason",
    )
    list_filter = (
        BY_ORGANISATION,
        ("operator_role", ChoicesDropdownFilter),
        ("timestamp", MomentFilter),
    )
    search_fields = ("=subject", "=operator")
    search_help_text = "A subject (case:CASE-…) or a person"
    ordering = ("-id",)

    def subject_of(self, row: Intervention) -> str:
        """Its events are those of what was intervened in."""
        return str(row.subject)


@admin.register(Violation)
class ViolationAdmin(BrowseAdmin):
    """Structural violations, by agent."""

    list_display = ("at", "agent_name", "fault", "stage", "round", "reason", "case")
    list_filter = (BY_ORGANISATION, ("fault", ChoicesDropdownFilter), ("at", MomentFilter))
    list_select_related = ("case",)
    search_fields = ("=agent_name", "=case__id")
    search_help_text = "An agent or a case (CASE-…)"
    ordering = ("-id",)

    def subject_of(self, row: Violation) -> str:
        """Its events are the case's."""
        return f"case:{row.case_id}"
