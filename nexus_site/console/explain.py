"""The page that says who may what, and by which rule: it asks the very rules that decide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelect2Widget, UnfoldAdminTextInputWidget

from core.decision import Allow, Decision
from core.ids import row_id
from core.people import signed_in
from nexus_site.company.agent_rights import contacts_of
from orgchart.explaining import CallQuestion, ask_mail, explain
from orgchart.people.members import visible_organisations
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD, ToolMode
from orgchart.policy_cache import current_policy
from toolbox.registry import REGISTRY
from toolbox.rules import Holder, effective_tools

MOST_TRIED = 20
"""Organisations whose policies are read to find one that has something to show."""
MOST_CHOICES = 200
"""Agents that a chooser lists; in a larger company their handle is typed."""


class Question(forms.Form):
    """Who, and what they would like to do."""

    organisation = forms.TypedChoiceField(
        label=_("Organisation"), coerce=int, widget=UnfoldAdminSelect2Widget()
    )
    agent = forms.ChoiceField(label=_("Agent"), widget=UnfoldAdminSelect2Widget())

    def __init__(self, data: Any, *, organisations: dict[int, str], policy: Policy) -> None:
        super().__init__(data)
        self._offer("organisation", [(str(n), name) for n, name in organisations.items()])
        agents = [(a.handle, _named(policy, a)) for a in policy.agents.values()]
        self._offer("agent", agents)

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  narrows the type
        if len(choices) > MOST_CHOICES:
            field.widget = UnfoldAdminTextInputWidget()
            field.help_text = gettext("The handle of an agent, as its page has it.")
        field.choices = choices


class ToolQuestion(Question):
    """Whether this agent may call this tool in this mode."""

    tool = forms.ChoiceField(label=_("Tool"), widget=UnfoldAdminSelect2Widget())
    mode = forms.ChoiceField(
        label=_("Mode"),
        widget=UnfoldAdminSelect2Widget(),
        choices=[(m.value, m.value) for m in ToolMode],
    )

    def __init__(self, data: Any, *, organisations: dict[int, str], policy: Policy) -> None:
        super().__init__(data, organisations=organisations, policy=policy)
        self._offer(
            "tool", [(t.name, t.name) for t in sorted(REGISTRY.all(), key=lambda t: t.name)]
        )

    def answer(self, policy: Policy, agent: Agent) -> tuple[str, Decision]:
        """The question as a sentence, and what the rules say."""
        tool, mode = self.cleaned_data["tool"], ToolMode(self.cleaned_data["mode"])
        decision = explain(CallQuestion(policy=policy, agent=agent, tool=tool, mode=mode))
        return gettext("%(agent)s calls %(tool)s in %(mode)s") % {
            "agent": agent.handle,
            "tool": tool,
            "mode": mode,
        }, decision


class MailQuestion(Question):
    """Whether this agent may send a mail of this type to the other."""

    recipient = forms.ChoiceField(label=_("Recipient"), widget=UnfoldAdminSelect2Widget())
    type = forms.ChoiceField(label=_("Type"), widget=UnfoldAdminSelect2Widget())
    contract = forms.CharField(
        label=_("Contract"),
        required=False,
        max_length=32,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "CON-…"}),
        help_text=_("The contract the mail names, if any."),
    )

    def __init__(self, data: Any, *, organisations: dict[int, str], policy: Policy) -> None:
        super().__init__(data, organisations=organisations, policy=policy)
        others = [(a.handle, _named(policy, a)) for a in policy.agents.values()]
        self._offer("recipient", [*others, (BOARD, gettext("board: the humans"))])
        self._offer("type", [(name, name) for name in sorted(policy.mail_types)])

    def answer(self, policy: Policy, agent: Agent) -> tuple[str, Decision]:
        """The question as a sentence, and what the rules say."""
        to, kind = self.cleaned_data["recipient"], self.cleaned_data["type"]
        ref = self.cleaned_data["contract"]
        decision = explain(ask_mail(policy, agent, mail_type=kind, to=to, contract=ref))
        asked = {"agent": agent.handle, "type": kind, "to": to, "contract": ref}
        if ref:
            return gettext(
                "%(agent)s sends %(type)s to %(to)s under %(contract)s"
            ) % asked, decision
        return gettext("%(agent)s sends %(type)s to %(to)s") % asked, decision


QUESTIONS: dict[str, type[ToolQuestion | MailQuestion]] = {
    "mail": MailQuestion,
    "tool": ToolQuestion,
}


def _named(policy: Policy, agent: Agent) -> str:
    return f"{agent.handle} ({policy.roles[agent.role].title})" + (
        "" if agent.active else gettext(", deactivated")
    )


def explain_page(request: HttpRequest) -> HttpResponse:
    """Ask, and see the answer and everything the agent may do. Changes nothing."""
    if not request.user.has_perm("orgchart.view_organisation"):
        raise PermissionDenied("orgchart.view_organisation")
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": gettext("Explain"),
        "subtitle": gettext("May this agent do that, and by which rule?"),
    }
    mine = visible_organisations(signed_in(request)).order_by("name")
    organisations = dict(mine.values_list("id", "name"))
    if organisations:
        context |= _asked(request, organisations)
    request.current_app = admin.site.name
    return TemplateResponse(request, "admin/nexus/explain.html", context)


def _asked(request: HttpRequest, organisations: dict[int, str]) -> dict[str, Any]:
    """The form, the answer if a whole question was asked, and the agent's rights."""
    policy = _chosen(request, organisations)
    kind = request.GET.get("ask") if request.GET.get("ask") in QUESTIONS else "mail"
    data = request.GET.copy()
    data.setdefault("organisation", str(policy.organisation_id))
    if data.get("agent") not in policy.agents:
        data["agent"] = next(iter(_correspondents(policy)), next(iter(policy.agents), ""))
    asked = set(QUESTIONS[str(kind)].base_fields) - {"contract"} <= set(request.GET)
    form = QUESTIONS[str(kind)](data, organisations=organisations, policy=policy)
    agent = policy.agents.get(str(data["agent"]))
    shown: dict[str, Any] = {"form": form, "ask": kind, "media": form.media, "agent": agent}
    if agent and not asked:
        _complete(data, policy, agent)
    if asked and form.is_valid() and agent:
        sentence, decision = form.answer(policy, agent)
        shown |= {"sentence": sentence, "decision": decision}
        shown["allowed"] = isinstance(decision, Allow)
    elif not asked:
        form.is_bound = False
        form.initial = data.dict()
    return shown | _rights(policy, agent)


def _chosen(request: HttpRequest, organisations: dict[int, str]) -> Policy:
    """The organisation asked for; else one of the first by name.

    It is one with two agents who may write to each other, where there is such a one among them.
    """
    number = row_id(request.GET.get("organisation", ""))
    if number in organisations:
        return current_policy(number)
    policies = (current_policy(key) for key in islice(organisations, MOST_TRIED))
    found = next((policy for policy in policies if any(_correspondents(policy))), None)
    return found or current_policy(next(iter(organisations)))


def _correspondents(policy: Policy) -> Iterator[str]:
    """The agents who may write to an agent that may answer them."""
    for agent in policy.agents.values():
        if agent.active and _answering(policy, agent):
            yield agent.handle


def _answering(policy: Policy, agent: Agent) -> list[str]:
    return [
        handle
        for handle in policy.contacts_of(agent)
        if handle in policy.agents and agent.handle in policy.contacts_of(policy.agents[handle])
    ]


def _complete(data: QueryDict, policy: Policy, agent: Agent) -> None:
    """Propose a mail that somebody might ask of: to another, of a type that may pass."""
    recipient = next(iter([*_answering(policy, agent), *policy.contacts_of(agent)]), BOARD)
    data.setdefault("recipient", recipient)
    chosen = str(data["recipient"])
    rule = policy.rule_between(agent, policy.party(chosen))
    types = policy.sendable_types(agent, chosen, rule) if rule else frozenset()
    data.setdefault("type", min(types, default=""))


def _rights(policy: Policy, agent: Agent | None) -> dict[str, Any]:
    """Everything the agent may do now, to read next to the single answer."""
    if agent is None:
        return {"policy": policy}
    tools = {
        mode: [t.name for t in effective_tools(REGISTRY.all(), Holder(agent, policy, mode))]
        for mode in ToolMode
        if mode in policy.enabled_modes
    }
    return {"policy": policy, "tools": tools, "contacts": contacts_of(policy, agent)}
