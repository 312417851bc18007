"""What the preview of a change says of mail, against what decides mail: each pair, each type."""

import re
from dataclasses import replace

import pytest

from core.decision import Allow
from mailroom.rules import Channel, can_mail
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.compiled import ContactRule
from orgchart.policy.difference import between
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.vocabulary import BOARD, Relation
from tests.orgchart.world import PACKS

SENTENCE = re.compile(r"(\S+) may send (\S+) to (any )?(\S+)( under a contract)?")


def answers(policy):
    """Every (sender, recipient, type, needs a contract) that the rules of mail let through."""
    active = [agent for agent in policy.agents.values() if agent.active]
    found = set()
    for sender in active:
        for name in policy.mail_types:
            if isinstance(can_mail(sender, BOARD_PARTY, name, policy), Allow):
                found.add((sender.handle, BOARD, name, False))
            for other in active:
                channel = Channel("CON", sender.id, other.id, frozenset({name}))
                if isinstance(can_mail(sender, other, name, policy), Allow):
                    found.add((sender.handle, other.handle, name, False))
                elif isinstance(can_mail(sender, other, name, policy, [channel]), Allow):
                    found.add((sender.handle, other.handle, name, True))
    return found


def covered(found):
    """These answers, and the same under a contract: where none is needed, that is nothing new."""
    return found | {(*pair, name, True) for *pair, name, _ in found}


def told(sentences, policy):
    """The same, read from sentences; `any` is everybody of the role that the policy has."""
    found = set()
    for sender, name, every, to, under in filter(None, map(read, sentences)):
        holders = [a.handle for a in policy.agents.values() if a.active and a.role == to]
        for recipient in holders if every else [to]:
            if recipient != sender:
                found.add((sender, recipient, name, under))
    return found


def read(sentence):
    found = SENTENCE.fullmatch(sentence)
    return found and (*found.group(1, 2), bool(found[3]), found[4], bool(found[5]))


def numbered(pack):
    """The pack's policy, with a number for each agent as the database would give."""
    policy = policy_of(pack)
    agents = {
        handle: replace(agent, id=number)
        for number, (handle, agent) in enumerate(policy.agents.items(), start=1)
    }
    return replace(policy, agents=agents)


def changes(pack):
    """Single changes that people make: moves, leaves, rules widened, narrowed, taken and made."""
    for one in pack.staff:
        others = [o.handle for o in pack.staff if o.handle != one.handle]
        for changed in [
            *(replace(one, reports_to=other) for other in [others[-1], BOARD]),
            replace(one, active=False),
            replace(one, co_managers=tuple(others[:1])),
        ]:
            yield replace(pack, staff=tuple(changed if s is one else s for s in pack.staff))
    for rule in pack.contacts[::5]:
        some = rule.types if rule.types is not None else frozenset(t.name for t in pack.mail_types)
        for changed in [
            replace(rule, relation=Relation.ANY),
            replace(rule, relation=Relation.OWN),
            replace(rule, types=None),
            replace(rule, types=frozenset(sorted(some)[1:])),
            replace(rule, needs_contract=not rule.needs_contract),
        ]:
            yield replace(pack, contacts=tuple(changed if c is rule else c for c in pack.contacts))
        yield replace(pack, contacts=tuple(c for c in pack.contacts if c is not rule))
    for kind in pack.mail_types:
        for changed in [
            replace(kind, senders=None),
            replace(kind, senders=frozenset()),
            replace(kind, to_superior=not kind.to_superior),
            replace(kind, issued_by=() if kind.issued_by else ("escalate",)),
        ]:
            yield replace(
                pack, mail_types=tuple(changed if t is kind else t for t in pack.mail_types)
            )
    first, last = pack.staff[0].role, pack.staff[-1].role
    new = ContactRule(last, first, types=None, relation=Relation.ANY)
    kept = [c for c in pack.contacts if (c.sender, c.recipient) != (last, first)]
    yield replace(pack, contacts=(*kept, new))


@pytest.mark.parametrize("name", ["nexus", "dev-team", "soloqueue"])
def test_says_of_mail_what_the_rules_of_mail_will_say(name):
    pack = sound_pack(PACKS / name)
    before = numbered(pack)
    old = answers(before)
    assert told(between(None, before).allowed, before) == old
    for changed in changes(pack):
        after = numbered(changed)
        new, said = answers(after), between(before, after)
        assert told(said.allowed, after) == new - covered(old)
        assert told(said.forbidden, before) == old - covered(new)
