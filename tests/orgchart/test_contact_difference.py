"""The difference in contacts: the same as pair by pair, at the cost of what changed."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from lab.bench.decisions import company_of
from orgchart.policy import contact_difference
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, ContactRule, MailTypeRule, Policy, Role
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.vocabulary import BOARD, Kind, Relation
from tests.orgchart.many_kinds import of_many_kinds

TYPES = ("info", "report", "bug")


def contacts_pair_by_pair(policy: Policy, sender: Agent) -> tuple[str, ...]:
    found = [
        other.handle
        for other in policy.agents.values()
        if other.active and policy.rule_between(sender, other) is not None
    ]
    return tuple(sorted([*found, *([BOARD] if policy.rule_between(sender, BOARD_PARTY) else [])]))


def ways_pair_by_pair(policy: Policy | None, handle: str, recipient: str) -> set[str]:
    agent = policy.agents.get(handle) if policy else None
    if not agent or not agent.active or recipient not in contacts_pair_by_pair(policy, agent):
        return set()
    rule = policy.rule_between(agent, policy.party(recipient))
    under = " under a contract" if rule.needs_contract and recipient != BOARD else ""
    types = policy.sendable_types(agent, recipient, rule)
    ceiling = {
        name
        for name, kind in policy.mail_types.items()
        if kind.may_come_from(policy.roles[agent.role])
    }
    carried = ceiling if rule.types is None else ceiling & rule.types
    free = recipient == BOARD or (carried and not rule.needs_contract)
    contact = "may contact {}" if free else "may contact {} under a contract"
    return {contact, *(f"may send {name} to {{}}{under}" for name in types)}


def gained(before: Policy | None, after: Policy, handle: str, recipient: str) -> set[str]:
    now = ways_pair_by_pair(after, handle, recipient)
    had = ways_pair_by_pair(before, handle, recipient)
    return now - had - {f"{way} under a contract" for way in had}


def newly_pair_by_pair(before: Policy | None, after: Policy) -> Iterator[str]:
    shown = set()
    for agent in after.agents.values():
        found = defaultdict(set)
        for recipient in [*after.agents, BOARD]:
            for way in gained(before, after, agent.handle, recipient):
                found[way].add(recipient)
                other = after.agents.get(recipient)
                shown.add((agent.role, other.role if other else BOARD, way))
        for way, recipients in found.items():
            for name in contact_difference._together(after, agent, recipients):
                yield f"{agent.handle} {way.format(name)}"
    for sender in after.roles:
        for recipient in [*after.roles, BOARD]:
            near, own, far = (
                gained(
                    before and with_newcomers(before, sender, recipient, managers),
                    with_newcomers(after, sender, recipient, managers),
                    "x",
                    BOARD if recipient == BOARD else "y",
                )
                for managers in ((BOARD if recipient == BOARD else "y",), ("z", "y"), ("z",))
            )
            for way in near | own | far:
                if (sender, recipient, way) not in shown:
                    name = f"any {recipient}" if way in far and recipient != BOARD else recipient
                    yield f"{sender} {way.format(name)} (for later holders)"


def with_newcomers(
    policy: Policy, sender: str, recipient: str, managers: tuple[str, ...]
) -> Policy:
    """The same rules, and one more agent of each role."""
    agents = list(policy.agents.values())
    if sender in policy.roles:
        agents.append(Agent(98, "x", sender, "X", managers=managers))
    if recipient in policy.roles:
        agents.append(Agent(99, "y", recipient, "Y"))
    roles, types = list(policy.roles.values()), list(policy.mail_types.values())
    return built(roles, agents, types, list(policy.contacts.values()))


def random_policy(random: Random) -> Policy:
    roles = list("abcd"[: random.randint(1, 4)])
    handles = list("pqrstu"[: random.randint(1, 6)])
    agents = [
        Agent(
            number,
            handle,
            random.choice(roles),
            handle,
            managers=tuple(random.sample([*handles, BOARD], random.randint(0, 2))),
            active=random.random() < 0.8,
        )
        for number, handle in enumerate(handles, 1)
    ]
    contacts = [
        ContactRule(
            one,
            other,
            random.choice([None, frozenset(random.sample(TYPES, random.randint(0, 3)))]),
            needs_contract=random.random() < 0.3,
            relation=random.choice(list(Relation)),
        )
        for one in roles
        for other in [*roles, BOARD]
        if random.random() < 0.6
    ]
    types = [
        MailTypeRule(name, None, to_superior=random.random() < 0.4, issued_by=("x",) * (n == 2))
        for n, name in enumerate(TYPES)
    ]
    return built([Role(r, r, 1, Kind.WORKER, frozenset()) for r in roles], agents, types, contacts)


def built(roles, agents, types, contacts) -> Policy:
    return build_policy(
        organisation_id=1,
        organisation="o",
        version=1,
        roles=roles,
        agents=agents,
        groups=[],
        mail_types=types,
        contacts=contacts,
        aliases={},
        settings={},
        enabled_modes=frozenset(),
    )


def with_one_changed(policy: Policy, random: Random) -> Policy:
    agents = list(policy.agents.values())
    place = random.randrange(len(agents))
    agents[place] = replace(agents[place], active=not agents[place].active)
    roles, types = list(policy.roles.values()), list(policy.mail_types.values())
    return built(roles, agents, types, list(policy.contacts.values()))


@pytest.mark.parametrize("seed", range(300))
def test_is_what_comparing_pair_by_pair_finds(seed):
    random = Random(seed)
    before = random_policy(random)
    for after in (random_policy(random), with_one_changed(before, random)):
        for one, other in ((before, after), (after, before), (None, after)):
            assert sorted(contact_difference.newly(one, other)) == sorted(
                newly_pair_by_pair(one, other)
            )
        for agent in after.agents.values():
            assert after.contacts_of(agent) == contacts_pair_by_pair(after, agent)


def test_asks_as_often_as_there_are_agents_not_pairs(monkeypatch):
    asked = []
    rule_between = Policy.rule_between

    def count(policy, one, other):
        asked.append(one)
        return rule_between(policy, one, other)

    monkeypatch.setattr(Policy, "rule_between", count)
    found = []
    for workers in (100, 200):
        asked.clear()
        list(contact_difference.newly(company_of(workers), company_of(workers + 1)))
        found.append(len(asked))
    assert found[1] < 2.2 * found[0]


class CountedRules(dict):
    """Contact rules that count how often one is looked up."""

    asked = 0

    def get(self, pair, default=None):
        self.asked += 1
        return super().get(pair, default)


def counted(policy: Policy) -> Policy:
    return replace(policy, contacts=CountedRules(policy.contacts))


def test_looks_up_as_many_rules_as_there_are_not_one_for_each_agent_and_role():
    found = []
    for workers in (100, 200):
        before, after = (counted(of_many_kinds(number)) for number in (workers, workers + 1))
        list(contact_difference.newly(before, after))
        found.append(before.contacts.asked + after.contacts.asked)
    assert found[1] < 2.2 * found[0]
