"""How two policies differ in the contacts of agents and of roles, in time linear in the change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD, Relation

Ways = frozenset[str]
"""What one pair may do, each the rest of a sentence: `may send info to {} under a contract`."""

CONTACT = "may contact {}"
LATER = " (for later holders)"
"""Ends a sentence about a role that becomes true once somebody holds it, or works under it."""
NONE: frozenset[str] = frozenset()


def newly(before: Policy | None, after: Policy) -> Iterator[str]:
    """What `after` lets a pair do that `before` did not, one sentence each.

    All holders of a role that a rule lets every agent reach are one recipient: `any <role>`. What
    a rule newly carries without any pair that it is true for yet is said of the roles.
    """
    fresh = {
        role: holders - before.holders.get(role, NONE) if before else holders
        for role, holders in after.holders.items()
    }
    shown = set()
    for agent in after.agents.values():
        if not agent.active:
            continue
        gained: defaultdict[str, set[str]] = defaultdict(set)
        for recipient in _suspects(before, after, agent, fresh):
            had = _ways(before, agent.handle, recipient) if before else NONE
            for way in _ways(after, agent.handle, recipient) - had:
                gained[way].add(recipient)
        for way, recipients in gained.items():
            shown |= {(agent.role, _role_of(after, each), way) for each in recipients}
            for recipient in _together(after, agent, recipients):
                yield f"{agent.handle} {way.format(recipient)}"
    for sender, recipient in after.contacts:
        had_by_rule = _carried_later(before, sender, recipient) if before else {}
        for way, to_any in _carried_later(after, sender, recipient).items():
            is_new = way not in had_by_rule or (to_any and not had_by_rule[way])
            if is_new and (sender, recipient, way) not in shown:
                reached = f"any {recipient}" if to_any and recipient != BOARD else recipient
                yield f"{sender} {way.format(reached)}{LATER}"


def _carried_later(policy: Policy, sender: str, recipient: str) -> dict[str, bool]:
    """What a rule lets its holders do, now or later; and whether towards any of the recipients."""
    rule = policy.contacts.get((sender, recipient))
    if rule is None:
        return {}
    to_any = rule.relation is Relation.ANY or recipient == BOARD
    needs_contract = rule.needs_contract and recipient != BOARD
    types = [policy.mail_types[name] for name in policy.carried_types(rule)]
    upward = frozenset(t.name for t in types if not t.issued_by and t.to_superior)
    others = frozenset(t.name for t in types if not t.issued_by and not t.to_superior)
    return dict.fromkeys(_as_ways(upward, needs_contract=needs_contract), False) | dict.fromkeys(
        _as_ways(others, needs_contract=needs_contract), to_any
    )


def _suspects(
    before: Policy | None, after: Policy, agent: Agent, fresh: Mapping[str, frozenset[str]]
) -> set[str]:
    """The recipients that an agent may have gained something with; never all for one new agent."""
    was = before.agents.get(agent.handle) if before else None
    found = {BOARD, agent.superior} | (after.near(agent) & after.agents.keys())
    for role, holders in after.holders.items():
        rule = after.contacts.get((agent.role, role))
        if rule is None or rule.relation is Relation.OWN:
            continue
        is_old = before and was and was.active and _carried(before, was, role)
        found |= fresh[role] if is_old == _carried(after, agent, role) else holders
    return found


def _carried(policy: Policy, agent: Agent, role: str) -> tuple[Ways, str] | None:
    """What an agent may do with every holder of a role, and its superior, who may get more."""
    rule = policy.contacts.get((agent.role, role))
    if rule is None or rule.relation is Relation.OWN:
        return None
    types = policy.sendable_types(agent, "", rule)
    return _as_ways(types, needs_contract=rule.needs_contract), agent.superior


def _ways(policy: Policy, handle: str, recipient: str) -> Ways:
    """What a pair may do: the contact, and the mail types that it carries (Spec: mail 6)."""
    agent, other = policy.agents.get(handle), policy.agents.get(recipient)
    if agent is None or not agent.active or (recipient != BOARD and not (other and other.active)):
        return NONE
    rule = policy.rule_between(agent, other) if other else policy.board_rule(agent)
    if rule is None:
        return NONE
    types = policy.sendable_types(agent, recipient, rule)
    return _as_ways(types, needs_contract=rule.needs_contract and recipient != BOARD)


@lru_cache(maxsize=4096)
def _as_ways(types: frozenset[str], *, needs_contract: bool) -> Ways:
    under = " under a contract" if needs_contract else ""
    return frozenset({CONTACT, *(f"may send {name} to {{}}{under}" for name in types)})


def _together(policy: Policy, agent: Agent, recipients: set[str]) -> Iterator[str]:
    by_role: defaultdict[str, set[str]] = defaultdict(set)
    for handle in recipients:
        by_role[_role_of(policy, handle)].add(handle)
    for role, handles in by_role.items():
        rule = policy.contacts[agent.role, role]
        if role != BOARD and rule.relation is Relation.ANY and handles >= policy.holders[role]:
            yield f"any {role}"
        else:
            yield from handles


def _role_of(policy: Policy, handle: str) -> str:
    other = policy.agents.get(handle)
    return other.role if other else BOARD
