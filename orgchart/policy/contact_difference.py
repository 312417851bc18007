"""How two policies differ in the contacts of agents and of roles, in time linear in the change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache

from orgchart.policy.compiled import Agent, ContactRule, Policy
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.readership import is_open
from orgchart.policy.vocabulary import BOARD, Relation

Ways = frozenset[str]
"""What one pair may do, each the rest of a sentence: `may send info to {} under a contract`."""

CONTACT = "may contact {}"
UNDER = " under a contract"
"""Ends what a pair may do only while a contract opens it; what needs none covers it."""

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
    open_to = _open_to(after)
    shown = set()
    for agent in after.agents.values():
        if not agent.active:
            continue
        gained: defaultdict[str, set[str]] = defaultdict(set)
        for recipient in _suspects(before, after, agent, open_to[agent.role], fresh):
            had = _covered(_ways(before, agent.handle, recipient)) if before else NONE
            for way in _ways(after, agent.handle, recipient) - had:
                gained[way].add(recipient)
        for way, recipients in gained.items():
            shown |= {(agent.role, _role_of(after, each), way) for each in recipients}
            for recipient in _together(after, agent, recipients):
                yield f"{agent.handle} {way.format(recipient)}"
    for sender, recipient in after.contacts:
        had_by_rule = _carried_later(before, sender, recipient) if before else {}
        had_by_rule |= {
            way + UNDER: far for way, far in had_by_rule.items() if not way.endswith(UNDER)
        }
        for way, far in _carried_later(after, sender, recipient).items():
            is_new = way not in had_by_rule or far > had_by_rule[way]
            if is_new and (sender, recipient, way) not in shown:
                reached = f"any {recipient}" if far is Far.ANY and recipient != BOARD else recipient
                yield f"{sender} {way.format(reached)}{LATER}"


class Far(IntEnum):
    """Which holders of a role a rule reaches, from few to many."""

    SUPERIOR = 1
    OWN = 2
    ANY = 3


def _carried_later(policy: Policy, sender: str, recipient: str) -> dict[str, Far]:
    """What a rule lets its holders do, now or later; and towards which of the recipients."""
    rule = policy.contacts.get((sender, recipient))
    if rule is None:
        return {}
    far = Far.ANY if rule.relation is Relation.ANY or recipient == BOARD else Far.OWN
    types = [policy.mail_types[name] for name in policy.carried_types(rule)]
    upward = frozenset(t.name for t in types if not t.issued_by and t.to_superior)
    others = frozenset(t.name for t in types if not t.issued_by and not t.to_superior)
    return dict.fromkeys(_ways_of(policy, rule, upward), Far.SUPERIOR) | dict.fromkeys(
        _ways_of(policy, rule, others), far
    )


def _open_to(policy: Policy) -> defaultdict[str, list[str]]:
    """By role the roles all of whose holders it may reach: few have any, of however many roles."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for (sender, recipient), rule in policy.contacts.items():
        if rule.relation is not Relation.OWN and recipient in policy.holders:
            found[sender].append(recipient)
    return found


def _suspects(
    before: Policy | None,
    after: Policy,
    agent: Agent,
    open_to: Iterable[str],
    fresh: Mapping[str, frozenset[str]],
) -> set[str]:
    """The recipients that an agent may have gained something with; never all for one new agent."""
    was = before.agents.get(agent.handle) if before else None
    found = {BOARD, agent.superior} | (after.near(agent) & after.agents.keys())
    for role in open_to:
        is_old = before and was and was.active and _carried(before, was, role)
        is_same = is_old == _carried(after, agent, role)
        found |= fresh[role] if is_same else after.holders[role]
    return found


def _carried(policy: Policy, agent: Agent, role: str) -> tuple[Ways, str] | None:
    """What an agent may do with every holder of a role, and its superior, who may get more."""
    rule = policy.contacts.get((agent.role, role))
    if rule is None or rule.relation is Relation.OWN:
        return None
    return _ways_of(policy, rule, policy.sendable_types(agent, "", rule)), agent.superior


def _ways(policy: Policy, handle: str, recipient: str) -> Ways:
    """What a pair may do: the contact, and the mail types that it carries (Spec: mail 6)."""
    agent, other = policy.agents.get(handle), policy.agents.get(recipient)
    if agent is None or not agent.active or (recipient != BOARD and not (other and other.active)):
        return NONE
    rule = policy.rule_between(agent, other or BOARD_PARTY)
    if rule is None:
        return NONE
    return _ways_of(policy, rule, policy.sendable_types(agent, recipient, rule))


def _ways_of(policy: Policy, rule: ContactRule, types: frozenset[str]) -> Ways:
    """What a rule gives where send_mail carries these types on it.

    An open rule shows its sender's texts to its recipient, by whichever tool it is used
    (Spec: tasks 33); one that is not open carries what contracts do.
    """
    to_board = rule.recipient == BOARD
    needs_contract = rule.needs_contract and not to_board
    return _as_ways(types, needs_contract=needs_contract, is_open=to_board or is_open(policy, rule))


@lru_cache(maxsize=4096)
def _as_ways(types: frozenset[str], *, needs_contract: bool, is_open: bool) -> Ways:
    under = UNDER if needs_contract else ""
    contact = CONTACT if is_open else CONTACT + UNDER
    return frozenset({contact, *(f"may send {name} to {{}}{under}" for name in types)})


def _covered(ways: Ways) -> Ways:
    """What a pair may do, and the same under a contract: where it is free, that is nothing new."""
    return ways | {way + UNDER for way in ways}


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
