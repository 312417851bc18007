"""The contacts of every pair of agents in a policy, and how two policies differ in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from orgchart.policy.compiled import Agent, ContactRule, Policy
from orgchart.policy.vocabulary import BOARD, Relation

Ways = frozenset[str]
"""What one pair may do, each the rest of a sentence: `may send info to {} under a contract`."""

CONTACT = "may contact {}"


def newly(before: Policy | None, after: Policy) -> Iterator[str]:
    """What `after` lets a pair do that `before` did not, one sentence each.

    All holders of a role that a rule lets every agent reach are one recipient: `any <role>`.
    """
    for agent in after.agents.values():
        had = reach(before, agent.handle) if before else {}
        gained: defaultdict[str, set[str]] = defaultdict(set)
        for recipient, ways in reach(after, agent.handle).items():
            for way in ways - had.get(recipient, frozenset()):
                gained[way].add(recipient)
        for way, recipients in gained.items():
            for recipient in _together(after, agent, recipients):
                yield f"{agent.handle} {way.format(recipient)}"


def reach(policy: Policy, handle: str) -> Mapping[str, Ways]:
    """The contacts of an agent, and the mail types of each (Spec: mail 6)."""
    agent = policy.agents.get(handle)
    if agent is None or not agent.active:
        return {}
    found: dict[str, Ways] = {}
    alike: dict[str, Ways] = {}
    for recipient in policy.contacts_of(agent):
        other = policy.agents.get(recipient)
        rule = policy.rule_between(agent, other) if other else policy.board_rule(agent)
        if rule is None:
            continue
        if recipient in (agent.superior, BOARD):
            found[recipient] = _ways(policy, agent, recipient, rule)
            continue
        if rule.recipient not in alike:
            alike[rule.recipient] = _ways(policy, agent, recipient, rule)
        found[recipient] = alike[rule.recipient]
    return found


def _ways(policy: Policy, agent: Agent, recipient: str, rule: ContactRule) -> Ways:
    under = " under a contract" if rule.needs_contract and recipient != BOARD else ""
    types = policy.sendable_types(agent, recipient, rule)
    return frozenset({CONTACT, *(f"may send {name} to {{}}{under}" for name in types)})


def _together(policy: Policy, agent: Agent, recipients: set[str]) -> Iterator[str]:
    by_role: defaultdict[str, set[str]] = defaultdict(set)
    for handle in recipients:
        other = policy.agents.get(handle)
        by_role[other.role if other else BOARD].add(handle)
    for role, handles in by_role.items():
        rule = policy.contacts[agent.role, role]
        if role != BOARD and rule.relation is Relation.ANY and handles >= _holders(policy, role):
            yield f"any {role}"
        else:
            yield from handles


def _holders(policy: Policy, role: str) -> set[str]:
    return {a.handle for a in policy.agents.values() if a.active and a.role == role}
