"""Which contact rules an organisation can have at all: C-01 to C-04 over its roles."""

from __future__ import annotations

from collections.abc import Iterator

from orgchart.policy.compiled import ContactRule, Policy
from orgchart.policy.violation import BrokenInvariant, Subject
from orgchart.policy.vocabulary import BOARD, Kind, Relation


def check_contacts(policy: Policy) -> Iterator[BrokenInvariant]:
    """Contact rules that C-01 to C-04 forbid."""
    for rule in policy.contacts.values():
        sender = policy.roles[rule.sender]
        if sender.kind is Kind.WORKER:
            yield from _worker_contact(policy, rule)
        elif rule.recipient == BOARD:
            if sender.kind is not Kind.EXECUTIVE:
                yield BrokenInvariant(
                    "C-02",
                    Subject.CONTACT,
                    rule.label,
                    "only the top agent writes to the Board",
                    "remove the rule",
                )
            else:
                yield from _board_contact(policy, rule)
        elif rule.relation is Relation.OWN:
            continue
        elif sender.kind is Kind.MANAGER:
            yield from _manager_contact(policy, rule)
        elif policy.roles[rule.recipient].kind is Kind.WORKER:
            yield BrokenInvariant(
                "C-01",
                Subject.CONTACT,
                rule.label,
                "the top agent writes to managers, or to workers of its own",
                "set `relation: own` or remove the rule",
            )


def _board_contact(policy: Policy, rule: ContactRule) -> Iterator[BrokenInvariant]:
    for agent in policy.agents.values():
        if agent.active and agent.role == rule.sender and agent.superior != BOARD:
            yield BrokenInvariant(
                "C-02",
                Subject.CONTACT,
                rule.label,
                f"{agent.handle} is not the top agent and would write to the Board",
                "only the role of the top agent writes to the Board; remove the rule",
            )


def _manager_contact(policy: Policy, rule: ContactRule) -> Iterator[BrokenInvariant]:
    kind = policy.roles[rule.recipient].kind
    if kind is Kind.WORKER:
        yield BrokenInvariant(
            "C-02",
            Subject.CONTACT,
            rule.label,
            "a manager writes to its own workers only",
            "set `relation: own` or remove the rule",
        )
    elif kind is Kind.MANAGER and rule.types is None and not rule.needs_contract:
        yield BrokenInvariant(
            "C-02",
            Subject.CONTACT,
            rule.label,
            "managers write to each other under conditions only",
            "name the mail types, set `needs_contract: true` or remove the rule",
        )


def _worker_contact(policy: Policy, rule: ContactRule) -> Iterator[BrokenInvariant]:
    if rule.recipient == BOARD:
        yield BrokenInvariant(
            "C-03",
            Subject.CONTACT,
            rule.label,
            "a worker never writes to the Board",
            "remove the rule",
        )
    elif policy.roles[rule.recipient].kind is Kind.WORKER:
        yield BrokenInvariant(
            "C-04",
            Subject.CONTACT,
            rule.label,
            "workers never write to each other",
            "relay through a manager",
        )
    elif rule.relation is not Relation.OWN:
        yield BrokenInvariant(
            "C-03",
            Subject.CONTACT,
            rule.label,
            "a worker writes to its own manager only",
            "set `relation: own`",
        )
