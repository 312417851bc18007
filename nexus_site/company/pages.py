"""The pages of the company drawn: its chain of command now, and the contact matrix."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext

from core.ids import row_id
from core.people import signed_in
from nexus_site.company import drawing, matrix
from nexus_site.company.state import AgentState, states_of
from orgchart.models import Agent, ContactRule
from orgchart.people.members import visible_organisations
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import current_policy

SEES = "orgchart.view_organisation"


MOST_CARDS = 120
"""Agents of one drawing; what is below one of them is a drawing of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """One agent of the drawing; `hidden` counts those below it that are not drawn."""

    place: drawing.CardPlace
    state: AgentState | None
    title: str
    address: str
    hidden: int = 0
    more: str = ""


def company_page(request: HttpRequest) -> HttpResponse:
    """The chain of command of an organisation with what everybody does now. Changes nothing."""
    context = _context(request, gettext("Company"))
    policy = context.get("policy")
    if policy is not None:
        top = request.GET.get("top", "")
        context |= _drawn(
            policy,
            context["organisation_name"],
            top if top in policy.agents else BOARD,
            with_titles=request.user.has_perm("contracts.view_contract"),
        )
    return TemplateResponse(request, "admin/nexus/company.html", context)


def _drawn(policy: Policy, name: str, top: str, *, with_titles: bool) -> dict[str, Any]:
    states = states_of(policy.organisation_id, with_titles=with_titles)
    below: dict[str, list[str]] = {}
    for agent in sorted(policy.agents.values(), key=lambda a: (policy.level_of(a), a.handle)):
        below.setdefault(agent.reports_to or BOARD, []).append(agent.handle)
    shown, hidden = drawing.nearest(top, below, MOST_CARDS)
    drawn = drawing.draw(top, shown)
    counts: dict[str, int] = {}
    for state in states.values():
        counts[state.condition] = counts.get(state.condition, 0) + 1
    cards = [
        replace(
            _card(policy, place, states, name),
            hidden=hidden.get(place.name, 0),
            more=_more(policy, states, place.name, top),
        )
        for place in drawn.places
    ]
    return {
        "drawing": drawn,
        "cards": cards,
        "counts": sorted(counts.items()),
        "top": "" if top == BOARD else top,
    }


def _more(policy: Policy, states: Mapping[str, AgentState], name: str, top: str) -> str:
    """Where those below an agent are that are not drawn: its own drawing, or the list."""
    if name not in (top, BOARD):
        return "?" + urlencode({"organisation": policy.organisation_id, "top": name})
    agents = reverse("admin:orgchart_agent_changelist")
    above = {"reports_to__id__exact": states[name].id} if name in states else {}
    return f"{agents}?{urlencode({'organisation__id__exact': policy.organisation_id, **above})}"


def _card(
    policy: Policy, place: drawing.CardPlace, states: Mapping[str, AgentState], name: str
) -> AgentCard:
    agent = policy.agents.get(place.name)
    state = states.get(place.name)
    if agent is None or state is None:
        return AgentCard(
            place=place,
            state=None,
            title=gettext("The people of %(name)s") % {"name": name},
            address="",
        )
    address = reverse("admin:orgchart_agent_change", args=[state.id])
    title = policy.roles[agent.role].title
    return AgentCard(place=place, state=state, title=title, address=address)


def matrix_page(request: HttpRequest) -> HttpResponse:
    """The contact rules as a table, of roles or of agents, and the rule of a cell."""
    context = _context(request, gettext("Contact matrix"))
    policy = context.get("policy")
    if policy is not None:
        of_agents = request.GET.get("of") == "agents"
        group = request.GET.get("group", "")
        context |= {
            "of": "agents" if of_agents else "roles",
            "group": group if group in policy.groups else "",
            "matrix": matrix.of_agents(policy, group if group in policy.groups else "")
            if of_agents
            else matrix.of_roles(policy),
            "chosen": _chosen(request, policy, of_agents=of_agents),
        }
    return TemplateResponse(request, "admin/nexus/matrix.html", context)


def _chosen(request: HttpRequest, policy: Policy, *, of_agents: bool) -> dict[str, Any] | None:
    """The cell that was opened: its rule's page, and each type as a question to Explain."""
    sender, recipient = request.GET.get("from", ""), request.GET.get("to", "")
    if of_agents:
        one = policy.agents.get(sender)
        known = recipient == BOARD or recipient in policy.agents
        cell = matrix.agent_cell(policy, one, recipient) if one and known else None
    else:
        known = sender in policy.roles and (recipient == BOARD or recipient in policy.roles)
        cell = matrix.role_cell(policy, sender, recipient) if known else None
    if cell is None:
        return None
    return {
        "cell": cell,
        "rule_page": _rule_page(policy, cell),
        "questions": _questions(policy, cell, of_agents=of_agents),
    }


def _rule_page(policy: Policy, cell: matrix.Cell) -> str:
    if cell.rule is None:
        return ""
    to = None if cell.rule.recipient == BOARD else cell.rule.recipient
    rows = ContactRule.objects.filter(
        organisation=policy.organisation_id, sender__name=cell.rule.sender, recipient__name=to
    )
    found = rows.values_list("pk", flat=True).first()
    return reverse("admin:orgchart_contactrule_change", args=[found]) if found else ""


def _questions(policy: Policy, cell: matrix.Cell, *, of_agents: bool) -> list[tuple[str, str]]:
    """Each type with the address at which Explain answers it, for agents of these roles."""
    if of_agents:
        pair = (cell.sender, cell.recipient)
    else:
        pair = (_holder(policy, cell.sender), _holder(policy, cell.recipient))
    if not all(pair) or pair[0] == pair[1]:
        return []
    types = cell.types or sorted(policy.types_from(policy.agents[pair[0]].role))[:1] or ["info"]
    return [(name, _explain(policy, pair, name)) for name in types]


def _holder(policy: Policy, role: str) -> str:
    """An active agent of a role, or the Board; empty where none does."""
    if role == BOARD:
        return BOARD
    return next((a.handle for a in policy.agents.values() if a.role == role and a.active), "")


def _explain(policy: Policy, pair: tuple[str, str], mail_type: str) -> str:
    asked = {
        "ask": "mail",
        "organisation": policy.organisation_id,
        "agent": pair[0],
        "recipient": pair[1],
        "type": mail_type,
        "contract": "",
    }
    return f"{reverse('admin:explain')}?{urlencode(asked)}"


def _context(request: HttpRequest, title: str) -> dict[str, Any]:
    """The page's frame and the chosen organisation; the largest one where none is chosen."""
    if not request.user.has_perm(SEES):
        raise PermissionDenied(SEES)
    request.current_app = admin.site.name
    context: dict[str, Any] = {**admin.site.each_context(request), "title": title}
    mine = visible_organisations(signed_in(request)).order_by("name")
    organisations = dict(mine.values_list("id", "name"))
    if not organisations:
        return context
    number = row_id(request.GET.get("organisation", ""))
    if number not in organisations:
        number = _largest(organisations) or next(iter(organisations))
    return context | {
        "organisations": organisations,
        "organisation_id": number,
        "organisation_name": organisations[number],
        "policy": current_policy(number),
    }


def _largest(ids: Collection[int]) -> int | None:
    """The one of these organisations with the most agents."""
    from django.db.models import Count

    rows = (
        Agent.objects.filter(organisation_id__in=ids)
        .order_by()
        .values("organisation_id")
        .annotate(n=Count("id"))
    )
    return rows.order_by("-n", "organisation_id").values_list("organisation_id", flat=True).first()
