"""Everything one agent may do now, each right with the rule that gives it: asks the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from core.decision import Deny
from orgchart.catalogue import Source
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.paths import expand
from orgchart.policy.vocabulary import ToolMode
from toolbox.registry import REGISTRY, Tool
from toolbox.rules import Holder, can_use

MOST_CONTACTS = 30
"""Contacts on the page; the matrix shows all of them."""


@dataclass(frozen=True, slots=True)
class Contact:
    """One party that the agent may write to: with which types, by which rule."""

    handle: str
    types: Sequence[str]
    rule: str
    needs_contract: bool


@dataclass(frozen=True, slots=True)
class Usable:
    """A tool that the agent may call; `mode` names the only mode of it where one is missing."""

    name: str
    mode: str
    needs_mode: bool


@dataclass(frozen=True, slots=True)
class TakenAway:
    """A tool that the agent would have, and the rule that takes it away."""

    name: str
    why: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What the agent may do: its contacts, its tools by the reason, its files."""

    contacts: Sequence[Contact]
    contacts_left_out: int
    tools: Mapping[str, Sequence[Usable]]
    taken_away: Sequence[TakenAway]
    files: Mapping[str, Sequence[str]]

    @property
    def tool_count(self) -> int:
        """How many tools it may call in some mode."""
        return sum(len(usable) for usable in self.tools.values())


def rights_of(policy: Policy, agent: Agent) -> Rights:
    """What the rules allow the agent now, in the modes that its organisation enables."""
    contacts = contacts_of(policy, agent)
    tools, taken = _tools(policy, agent, sorted(REGISTRY.all(), key=lambda tool: tool.name))
    return Rights(
        contacts=contacts[:MOST_CONTACTS],
        contacts_left_out=max(0, len(contacts) - MOST_CONTACTS),
        tools=tools,
        taken_away=taken,
        files=_files(policy.roles[agent.role], agent),
    )


def contacts_of(policy: Policy, agent: Agent) -> list[Contact]:
    """Everyone that the agent may write to."""
    rules = ((to, policy.rule_between(agent, policy.party(to))) for to in policy.contacts_of(agent))
    return [
        Contact(to, sorted(policy.sendable_types(agent, to, rule)), rule.label, rule.needs_contract)
        for to, rule in rules
        if rule is not None
    ]


def _tools(
    policy: Policy, agent: Agent, tools: Iterable[Tool]
) -> tuple[dict[str, list[Usable]], list[TakenAway]]:
    role = policy.roles[agent.role]
    usable: dict[str, list[Usable]] = {}
    taken = []
    modes = [mode for mode in ToolMode if mode in policy.enabled_modes]
    for tool in tools:
        answers = {mode: can_use(tool, tool.name, Holder(agent, policy, mode)) for mode in modes}
        allowed = [mode for mode, answer in answers.items() if not isinstance(answer, Deny)]
        if allowed:
            needs = ToolMode.CHAT_SAFE not in allowed
            usable.setdefault(_why(tool, role), []).append(Usable(tool.name, allowed[0], needs))
        elif tool.name in role.tools | role.denied_tools | agent.skills:
            refusal = next((a for a in answers.values() if isinstance(a, Deny)), None)
            if refusal is not None:
                taken.append(TakenAway(tool.name, refusal.message, refusal.rule))
    return usable, taken


def _why(tool: Tool, role: Role) -> str:
    match tool.source:
        case Source.BUILTIN:
            return gettext("Built in: every agent has these")
        case Source.OFFICE:
            return gettext("From its office: %(offices)s") % {
                "offices": ", ".join(sorted(role.offices & tool.offices))
            }
        case Source.SKILL:
            return gettext("Its own skills")
        case Source.ROLE:
            if tool.name in role.tools:
                return gettext("From its role %(role)s") % {"role": role.name}
            return gettext("Its own extra tools")


def _files(role: Role, agent: Agent) -> dict[str, list[str]]:
    """Its paths in the company's files, by what it may do there."""
    paths = {
        gettext("May read and write"): role.files.write,
        gettext("May read"): role.files.read,
        gettext("Never touches"): role.files.deny,
    }
    return {title: sorted(expand(found, agent)) for title, found in paths.items() if found}
