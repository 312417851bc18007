"""What a change of policy permits and forbids, stated as facts that a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.policy import Agent, ContactRule, Policy
from orgchart.vocabulary import BOARD, ContractScope, Relation


@dataclass(frozen=True, slots=True)
class Difference:
    """Two sorted lists of sentences; both empty when nothing changes for anybody."""

    allowed: tuple[str, ...]
    forbidden: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes for anybody."""
        return not (self.allowed or self.forbidden)


def between(before: Policy | None, after: Policy) -> Difference:
    """What `after` newly allows and newly forbids; a new organisation allows all it has."""
    old = frozenset(facts(before)) if before else frozenset()
    new = frozenset(facts(after))
    lifted = frozenset(denials(before)) if before else frozenset()
    imposed = frozenset(denials(after))
    return Difference(
        tuple(sorted((new - old) | {f"{d} (lifted)" for d in lifted - imposed})),
        tuple(sorted((old - new) | (imposed - lifted))),
    )


def denials(policy: Policy) -> Iterator[str]:
    """Everything the policy forbids whatever else is allowed."""
    for role in policy.roles.values():
        for tool in role.denied_tools:
            yield f"{role.name} is denied {tool}"
        for path in role.files.deny:
            yield f"{role.name} is denied {path}"


def facts(policy: Policy) -> Iterator[str]:
    """Everything the policy permits, one sentence each: exact, finite, comparable.

    Rules that hold for any two holders of two roles are stated once per sender; those between a
    manager and its own are stated per pair.
    """
    for mode in policy.enabled_modes:
        yield f"sessions may be in {mode}"
    for agent in policy.agents.values():
        if agent.active:
            yield from _agent_facts(policy, agent)
    for role in policy.roles.values():
        if role.task_lead:
            yield f"{role.name} leads tasks"
        for name, value in role.permissions.items():
            yield f"{role.name} has {name} = {value}"
        for office in role.offices:
            yield f"{role.name} holds the office {office}"


def _agent_facts(policy: Policy, agent: Agent) -> Iterator[str]:
    role = policy.role_of(agent)
    yield f"{agent.handle} acts as {role.name} (level {role.level})"
    for manager in agent.managers:
        yield f"{manager} manages {agent.handle}"
    if agent.is_leader:
        yield f"{agent.handle} leads {agent.group}"
    for tool in (role.tools | agent.skills) - role.denied_tools:
        yield from _tool_facts(policy, agent, tool)
    yield from _tightened_builtins(policy, agent)
    for path in role.files.write:
        yield f"{agent.handle} may write {path.replace('{agent}', agent.handle)}"
    for path in role.files.read:
        yield f"{agent.handle} may read {path.replace('{agent}', agent.handle)}"
    if role.files.contract is not ContractScope.NONE:
        yield f"{agent.handle} may {role.files.contract} the scope of its contracts"
    for rule in policy.contacts.values():
        if rule.sender == agent.role:
            yield from _contact_facts(policy, agent, rule)


def _tool_facts(policy: Policy, agent: Agent, tool: str) -> Iterator[str]:
    entry = catalogue.known().get(tool)
    modes = (entry.modes if entry else frozenset()) & policy.enabled_modes
    left = policy.tightened(agent, tool)
    for mode in modes if left is None else modes & left:
        yield f"{agent.handle} may call {tool} in {mode}"


def _tightened_builtins(policy: Policy, agent: Agent) -> Iterator[str]:
    for name, entry in catalogue.known().items():
        if entry.source is Source.BUILTIN and policy.tightened(agent, name) is None:
            yield f"{agent.handle} has the built-in {name}"


def _contact_facts(policy: Policy, agent: Agent, rule: ContactRule) -> Iterator[str]:
    ceiling = policy.types_from(agent.role)
    types = ceiling if rule.types is None else ceiling & rule.types
    under = " under a contract" if rule.needs_contract else ""
    if rule.relation is Relation.ANY or rule.recipient == BOARD:
        recipients = [f"any {rule.recipient}" if rule.recipient != BOARD else BOARD]
    else:
        recipients = [
            other.handle
            for other in policy.agents.values()
            if other.active and other.role == rule.recipient and policy.is_own(agent, other)
        ]
    for recipient in recipients:
        for mail_type in types:
            yield f"{agent.handle} may send {mail_type} to {recipient}{under}"
