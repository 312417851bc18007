"""What the agents that order changes are told: their contracts replace a second person. Pure.

Spec: people 60.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.contact_difference import LATER
from orgchart.policy.separation import ORDERS_CHANGES


def told_otherwise(before: Policy, after: Policy) -> Iterator[str]:
    """The agents that order changes whose instructions people changed.

    Deactivated ones, too, and who holds such a role later: words that were written before somebody
    comes to order changes would be confirmed unseen.
    """
    held = set()
    for agent in after.agents.values():
        role, was = after.role_of(agent), before.agents.get(agent.handle)
        held.add(role.name)
        if was is None or not orders_changes(role):
            continue
        if _instructions(before, was) != _instructions(after, agent):
            yield f"{agent.handle}, which orders changes, gets other instructions"
    for name in (before.roles.keys() & after.roles.keys()) - held:
        role = after.roles[name]
        if orders_changes(role) and _words(role) != _words(before.roles[name]):
            yield f"{name}, which orders changes, gets other instructions{LATER}"


def instructions_given(before: Policy, after: Policy) -> dict[str, str]:
    """The digests of what agents and roles are told that come to order changes by a change, or are
    told otherwise by it: who confirms the change has read these words (Spec: people 29).
    """
    return {
        who: hashlib.sha256(repr(words).encode()).hexdigest()
        for who, words in _given(before, after).items()
    }


def words_given(before: Policy, after: Policy) -> dict[str, str]:
    """The words of `instructions_given`, for who confirms the change."""
    return {who: "\n".join(_lines(words)) for who, words in _given(before, after).items()}


def _given(before: Policy, after: Policy) -> dict[str, tuple[object, ...]]:
    told = {
        agent.handle: _instructions(after, agent)
        for agent in after.agents.values()
        if orders_changes(after.role_of(agent))
        and _ordering(before, before.agents.get(agent.handle)) != _instructions(after, agent)
    }
    for name, role in after.roles.items():
        was = before.roles.get(name)
        if orders_changes(role) and (was is None or not orders_changes(was)):
            told[f"role {name}"] = _words(role)
    return told


def _lines(words: Iterable[object]) -> Iterator[str]:
    """The texts in instructions, of which some are lists."""
    for each in words:
        if isinstance(each, tuple):
            yield from _lines(each)
        elif each:
            yield str(each)


def orders_changes(role: Role) -> bool:
    """Whether who holds the role issues the contracts that replace a second person."""
    return ORDERS_CHANGES in role.tools - role.denied_tools


def _ordering(policy: Policy, agent: Agent | None) -> tuple[object, ...] | None:
    """What an agent is told as one that orders changes, if it is one."""
    if agent is None or not orders_changes(policy.role_of(agent)):
        return None
    return _instructions(policy, agent)


def _instructions(policy: Policy, agent: Agent) -> tuple[object, ...]:
    """What an agent's prompt says in the words of people."""
    group = policy.groups.get(agent.group)
    shared = (group.name, group.context) if group else ()
    return agent.system_prompt, *_words(policy.role_of(agent)), shared


def _words(role: Role) -> tuple[object, ...]:
    return role.summary, role.prohibitions
