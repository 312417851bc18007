"""Hiring, moving and leading as flows: choices that work, a preview of the effects, a key."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from core.admin.acts import ActRequest
from core.admin.contexts import admin_context
from core.admin.refused import refused_as_text
from core.decision import Denied
from core.hooks import Hook
from core.ids import row_id
from core.permissions import Deed
from orgchart.admin.agent_page import AgentPageAdmin
from orgchart.admin.choosing import chosen_organisation, names_organisation
from orgchart.admin.fields import ReasonedForm
from orgchart.admin.preview import BACK, CONFIRM, RowChange
from orgchart.models import Agent, Organisation, Role
from orgchart.policy import compiled
from orgchart.policy.hiring import PossibleSuperior, can_be_under, newcomer, placed, places_of
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import current_policy
from orgchart.second_person.edits import Edit, replacing_leader, saving

SHOWN = 40
"""Superiors on one page; a search finds the others."""

rights_of_agent = Hook[[compiled.Policy, compiled.Agent], Any](
    "what the rules allow an agent, for pages"
)


class MoveForm(ReasonedForm):
    """The new superior, and why."""

    superior = forms.CharField(max_length=64)


class PlacingAdmin(AgentPageAdmin):
    """Agents are hired and moved by choosing among what the rules allow (Spec: people 41)."""

    hire_fieldsets: Any = ()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """A shorter form for a new agent."""
        is_hire = obj is None and self.has_add_permission(request)
        return self.hire_fieldsets if is_hire else super().get_fieldsets(request, obj)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """A new agent is hired: first its role, then its superior, then the rest."""
        chosen = object_id is None and names_organisation(request)
        organisation = chosen_organisation(request) if chosen else None
        if organisation is None or request.method == "POST" or not self.has_add_permission(request):
            return super().changeform_view(request, object_id, form_url, extra_context)
        role = _row(organisation.roles, request.GET.get("role", ""))
        if role is None:
            return self._choose_role(request, organisation)
        policy = current_policy(organisation.id)
        superior = self._superior(request, organisation)
        agent = newcomer(role.name)
        if superior is None or not _is_possible(policy, agent, superior):
            return self._choose_superior(request, organisation, role, superior)
        there = placed(agent, superior)
        hire = {
            "hire": there,
            "title": gettext("Hire a %(role)s") % {"role": role.title},
            "policy": policy,
            "party": there,
            "rights": next(iter(rights_of_agent(policy, there)), None),
            "back": f"?organisation={organisation.id}&role={role.id}",
        }
        return super().changeform_view(request, None, form_url, {**(extra_context or {}), **hire})

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """What the address says, and a name that is free."""
        found: dict[str, Any] = super().get_changeform_initial_data(request)
        organisation = chosen_organisation(request)
        role = _row(organisation.roles, request.GET.get("role", "")) if organisation else None
        if role is not None and organisation is not None:
            found.setdefault("handle", _free_name(current_policy(organisation.id), role.name))
            found.setdefault("title", role.title)
        above = _row(organisation.agents, found.get("reports_to", "")) if organisation else None
        if above is None:
            found.pop("reports_to", None)
        elif above.group_id:
            found |= {"group": above.group_id, "name": found["handle"]}
        return found

    def _superior(self, request: HttpRequest, organisation: Organisation) -> str | None:
        given = request.GET.get("reports_to", "")
        found = _row(organisation.agents, given)
        return BOARD if given == BOARD else found and found.handle

    def _choose_role(self, request: HttpRequest, organisation: Organisation) -> HttpResponse:
        policy = current_policy(organisation.id)
        roles = organisation.roles.all()
        context = {
            "title": gettext("Hire an agent"),
            "organisation": organisation,
            "roles": [(role, len(policy.holders.get(role.name, ()))) for role in roles],
        }
        return self._flow_page(request, "admin/nexus/hire_role.html", context)

    def _choose_superior(
        self, request: HttpRequest, organisation: Organisation, role: Role, refused: str | None
    ) -> HttpResponse:
        policy = current_policy(organisation.id)
        places = places_of(policy, newcomer(role.name))
        found = next((place for place in places if place.superior == refused), None)
        ids = dict(organisation.agents.values_list("handle", "id"))
        context = {
            "title": gettext("Hire a %(role)s") % {"role": role.title},
            "organisation": organisation,
            "role": role,
            "refused": found,
            **_places(request, places, {**ids, BOARD: BOARD}),
            "back": f"?organisation={organisation.id}",
        }
        return self._flow_page(request, "admin/nexus/hire_superior.html", context)

    def _flow_page(
        self, request: HttpRequest, template: str, context: dict[str, Any]
    ) -> HttpResponse:
        return TemplateResponse(request, template, admin_context(self, request, **context))

    def _carry_out(
        self, request: HttpRequest, change: RowChange, edit: Edit, *, removal: bool
    ) -> HttpResponse:
        """Save; a new agent gets its first key at once, from a person who may issue one."""
        answer = super()._carry_out(request, change, edit, removal=removal)
        saved = isinstance(answer, HttpResponseRedirect) and answer.url == self._list_url()
        if not saved or edit.key is not None:
            return answer
        hired = Agent.objects.get(
            organisation_id=change.person.organisation_id, handle=change.row.handle
        )
        issue = next(act for act in self.acts if act.deed is Deed.ISSUE_KEY)
        if not request.user.has_perm(issue.permission):
            self.message_user(
                request,
                gettext("%(agent)s has no key yet. A Board member issues it here.")
                % {"agent": hired},
            )
            return self._to_row(hired)
        data = {"reason": change.data["reason"]}
        call = ActRequest(row=hired, person=change.person, data=data, now=change.now)
        try:
            key = issue.perform(call)
        except Denied as refusal:
            self.message_user(request, refused_as_text(refusal.deny), messages.WARNING)
            return self._to_row(hired)
        return self._answered(request, issue, hired, key)

    def move_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Choose another superior; on POST the effects, then the change."""
        row = self._row_to_change(request, object_id)
        if row is None:
            return self.gone(request, object_id)
        policy = current_policy(row.organisation_id)
        form = MoveForm(request.POST or None, initial={"seen_version": policy.version})
        if request.method == "POST" and form.is_valid() and BACK not in request.POST:
            superior = str(form.cleaned_data["superior"])
            above = Agent.objects.filter(organisation=row.organisation_id, handle=superior).first()
            if above is not None or superior == BOARD:
                row.reports_to = above
                return self._flow(request, row, form, saving(row))
            form.add_error("superior", gettext("choose one of the list"))
        places = [
            place
            for place in places_of(policy, policy.agents[row.handle])
            if place.superior != (row.reports_to.handle if row.reports_to else BOARD)
        ]
        context = {
            "title": gettext("Move %(agent)s") % {"agent": row},
            "original": row,
            "object": row,
            "form": form,
            "media": self.media,
            "back": self._row_url(row),
            **_places(request, places, {place.superior: place.superior for place in places}),
        }
        return self._flow_page(request, "admin/nexus/move.html", context)

    def lead_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Let this member lead its group; on POST the effects, then the change."""
        row = self._row_to_change(request, object_id)
        if row is None or row.group is None or row.is_leader or not row.active:
            return self.gone(request, object_id)
        version = current_policy(row.organisation_id).version
        form = ReasonedForm(request.POST or None, initial={"seen_version": version})
        if request.method == "POST" and form.is_valid() and BACK not in request.POST:
            return self._flow(request, row, form, replacing_leader(row.group, row))
        leader = row.group.members.filter(is_leader=True).first()
        context = {
            "title": gettext("Let %(object)s lead %(group)s") % {"object": row, "group": row.group},
            "original": row,
            "object": row,
            "leader": leader,
            "form": form,
            "media": self.media + form.media,
            "back": self._row_url(row),
        }
        return self._flow_page(request, "admin/nexus/lead.html", context)

    own_pages = (
        ("<path:object_id>/move/", "orgchart_agent_move", move_view),
        ("<path:object_id>/lead/", "orgchart_agent_lead", lead_view),
    )

    def _row_to_change(self, request: HttpRequest, object_id: str) -> Any:
        row = self.get_object(request, unquote(object_id))
        if not self.has_change_permission(request, row):
            raise PermissionDenied(f"{self.opts.app_label}.change_{self.opts.model_name}")
        return row

    def _flow(self, request: HttpRequest, row: Any, form: forms.Form, edit: Edit) -> HttpResponse:
        """Preview the edit, or carry it out when the preview was confirmed."""
        change = self._change(request, row, form.cleaned_data, None)
        if CONFIRM in request.POST:
            return self._carry_out(request, change, edit, removal=False)
        return self._preview(request, change, removal=False, edit=edit)


def _row(rows: Any, given: str) -> Any:
    """The row of an id in an address; None for what is no id of these rows."""
    number = row_id(given)
    return None if number is None else rows.filter(pk=number).first()


def _is_possible(policy: compiled.Policy, agent: compiled.Agent, superior: str) -> bool:
    return PossibleSuperior(superior, "", can_be_under(policy, agent, superior)).is_possible


def _free_name(policy: compiled.Policy, role: str) -> str:
    """The role's name, or with the first number that is free."""
    taken = {*policy.names, *policy.roles} - {role}
    numbers = (f"{role}_{number}" for number in range(2, len(taken) + 3))
    return role if role not in policy.names else next(n for n in numbers if n not in taken)


def _places(
    request: HttpRequest, places: list[PossibleSuperior], values: dict[str, Any]
) -> dict[str, Any]:
    """The possible superiors that the search finds, bounded; how many are not shown."""
    find = request.GET.get("find", "").strip().lower()[:64]
    possible = [place for place in places if place.is_possible]
    found = [p for p in possible if find in p.superior or find in p.title.lower()]
    return {
        "find": find,
        "places": [(place, values[place.superior]) for place in found[:SHOWN]],
        "left_out": len(found) - len(found[:SHOWN]),
        "impossible": [place for place in places if not place.is_possible][:SHOWN],
        "none": not possible,
    }
