"""Decisions in process: what one rule costs with a thousand agents, without any I/O."""

from __future__ import annotations

import time

from lab.bench.report import Report
from mailroom.rules import can_mail
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, ContactRule, MailTypeRule, Policy, Role
from orgchart.policy.vocabulary import Kind, Relation, ToolMode

WORKERS = 1000
ROUNDS = 20


def company_of(workers: int) -> Policy:
    """One executive, a manager for every ten workers."""
    roles = [
        Role("ceo", "CEO", 1, Kind.EXECUTIVE, frozenset({"send_mail"})),
        Role("manager", "Manager", 2, Kind.MANAGER, frozenset({"send_mail"})),
        Role("worker", "Worker", 3, Kind.WORKER, frozenset({"send_mail"})),
    ]
    agents = [Agent(1, "ceo", "ceo", "CEO", managers=("board",))]
    for number in range(workers):
        if number % 10 == 0:
            agents.append(
                Agent(len(agents) + 1, f"m{number // 10}", "manager", "M", managers=("ceo",))
            )
        boss = f"m{number // 10}"
        agents.append(Agent(len(agents) + 1, f"w{number}", "worker", "W", managers=(boss,)))
    contacts = [
        ContactRule("ceo", "manager"),
        ContactRule("manager", "ceo"),
        ContactRule("manager", "worker", relation=Relation.OWN),
        ContactRule("worker", "manager", relation=Relation.OWN),
    ]
    return build_policy(
        organisation_id=1,
        organisation="bench",
        version=1,
        roles=roles,
        agents=agents,
        groups=[],
        mail_types=[MailTypeRule("info", None), MailTypeRule("report", None)],
        contacts=contacts,
        aliases={},
        settings={},
        enabled_modes=frozenset({ToolMode.CHAT_SAFE}),
    )


def rows(report: Report) -> None:
    """What an allowed and a refused decision cost."""
    policy = company_of(WORKERS)
    pairs = [(policy.agents[f"w{n}"], policy.agents[f"m{n // 10}"]) for n in range(WORKERS)]
    others = [(policy.agents[f"w{n}"], policy.agents["ceo"]) for n in range(WORKERS)]
    for what, cases in (("allowed", pairs), ("refused", others)):
        first = _each(policy, cases, rounds=1)
        again = _each(policy, cases, rounds=ROUNDS)
        report.value(f"decision, {len(policy.agents)} agents, {what}", again, "µs")
        report.value(f"… the first of a sender under a policy, {what}", first, "µs")


def _each(policy: Policy, cases: list[tuple[Agent, Agent]], *, rounds: int) -> float:
    """Microseconds of one decision."""
    begun = time.perf_counter()
    for _ in range(rounds):
        for sender, recipient in cases:
            can_mail(sender, recipient, "info", policy)
    return (time.perf_counter() - begun) / rounds / len(cases) * 1e6
