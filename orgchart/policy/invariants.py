"""What must hold in every organisation, checked over the whole compiled policy at every change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from orgchart import catalogue
from orgchart.policy import guarantees, separation
from orgchart.policy.compiled import Policy
from orgchart.policy.contact_invariants import check_contacts
from orgchart.policy.parties import chain_of
from orgchart.policy.paths import problem_of_deny, problem_of_scope
from orgchart.policy.violation import BrokenInvariant, Subject
from orgchart.policy.vocabulary import (
    BOARD,
    HANDLE_FORM,
    HANDLE_MEANT,
    KINDS,
    RESERVED,
    SKILL_FORM,
    SKILL_MEANT,
    Kind,
)

TOOL_TYPES = frozenset({"contract", "verdict", "deployment_approval"})
"""Mail types that also move a state machine."""


def violations(policy: Policy) -> list[BrokenInvariant]:
    """Every invariant that the policy breaks, each with its place; empty when it is sound."""
    return [found for check in CHECKS for found in check(policy)]


def _names(policy: Policy) -> Iterator[BrokenInvariant]:
    for agent in policy.agents.values():
        taken = RESERVED & {agent.handle, agent.name}
        if taken:
            yield BrokenInvariant(
                "names",
                Subject.AGENT,
                agent.handle,
                f"`{min(taken)}` means another actor in mails and events",
                "choose another name",
            )
        if agent.handle in policy.roles and agent.role != agent.handle:
            yield BrokenInvariant(
                "names",
                Subject.AGENT,
                agent.handle,
                f"its handle is a role that it does not hold: it holds {agent.role}",
                "a handle may be the name of its own role only",
            )
        if policy.names[agent.address] != agent.handle:
            yield BrokenInvariant(
                "names",
                Subject.AGENT,
                agent.handle,
                f"the address {agent.address} already names {policy.names[agent.address]}",
                "choose another name or group",
            )


def _kinds(policy: Policy) -> Iterator[BrokenInvariant]:
    for name in sorted(KINDS.intersection(policy.roles)):
        yield BrokenInvariant(
            "names",
            Subject.ROLE,
            name,
            f"`{name}` means every role of that kind",
            "choose another name",
        )


def _types(policy: Policy) -> Iterator[BrokenInvariant]:
    if BOARD in policy.mail_types:
        problem = f"`{BOARD}` names the humans, not the mail type"
        yield BrokenInvariant("names", Subject.MAIL_TYPE, BOARD, problem, "choose another name")


def _forms(policy: Policy) -> Iterator[BrokenInvariant]:
    named: list[tuple[Subject, str, str]] = []
    for agent in policy.agents.values():
        named.append((Subject.AGENT, agent.handle, agent.handle))
        named += [(Subject.AGENT, agent.handle, agent.name)] if agent.name else []
    named += [(Subject.AGENT, handle, alias) for alias, handle in policy.aliases.items()]
    named += [(Subject.ROLE, name, name) for name in policy.roles]
    named += [(Subject.GROUP, slug, slug) for slug in policy.groups]
    named += [(Subject.MAIL_TYPE, name, name) for name in policy.mail_types]
    for kind, subject, name in named:
        if not re.match(HANDLE_FORM, name):
            yield BrokenInvariant("names", kind, subject, f"{name!r} is no name", HANDLE_MEANT)
    listed = ((agent.handle, skill) for agent in policy.agents.values() for skill in agent.skills)
    for handle, skill in sorted(listed):
        if not re.match(SKILL_FORM, skill):
            problem = f"{skill!r} is no name"
            yield BrokenInvariant("names", Subject.AGENT, handle, problem, SKILL_MEANT)


def _aliases(policy: Policy) -> Iterator[BrokenInvariant]:
    for alias, handle in policy.aliases.items():
        named = policy.names.get(alias)
        if alias in policy.roles and policy.agents[handle].role != alias:
            yield BrokenInvariant(
                "names",
                Subject.AGENT,
                handle,
                f"its alias {alias} is a role that it does not hold",
                "choose another alias",
            )
        if named == handle and alias != handle and alias not in RESERVED:
            continue
        yield BrokenInvariant(
            "names",
            Subject.AGENT,
            handle,
            f"its alias {alias} is a name of {named or 'no agent'} already",
            "choose another alias",
        )


def _known_tools(policy: Policy) -> Iterator[BrokenInvariant]:
    known = catalogue.known()
    if not known:  # no room that declares tools runs in this process
        return
    bindable = catalogue.bindable()
    for role in policy.roles.values():
        for tool in sorted(role.tools - bindable):
            yield BrokenInvariant(
                "known tools",
                Subject.ROLE,
                role.name,
                f"{tool} is bound by itself and cannot be listed"
                if tool in known
                else f"there is no tool {tool}",
                f"take {tool} out of the role's tools",
            )
        for tool in sorted(role.denied_tools - frozenset(known)):
            yield BrokenInvariant(
                "known tools",
                Subject.ROLE,
                role.name,
                f"there is no tool {tool} to deny",
                "correct its name",
            )


def _known_types(policy: Policy) -> Iterator[BrokenInvariant]:
    for kind in policy.mail_types.values():
        for sender in sorted((kind.senders or frozenset()) - KINDS - frozenset(policy.roles)):
            yield BrokenInvariant(
                "known names",
                Subject.MAIL_TYPE,
                kind.name,
                f"sender {sender} is no role",
                f"name a role of this pack, or a kind: {', '.join(sorted(KINDS))}",
            )
    for rule in policy.contacts.values():
        for mail_type in sorted((rule.types or frozenset()) - frozenset(policy.mail_types)):
            yield BrokenInvariant(
                "known names",
                Subject.CONTACT,
                rule.label,
                f"there is no mail type {mail_type}",
                "declare the type",
            )


def _tool_types(policy: Policy) -> Iterator[BrokenInvariant]:
    """What moves a state machine is no text that send_mail carries (Spec: mail 23)."""
    for name in sorted(TOOL_TYPES & policy.mail_types.keys()):
        if not policy.mail_types[name].issued_by:
            yield BrokenInvariant(
                "types of tools",
                Subject.MAIL_TYPE,
                name,
                "only a tool sends this type",
                "name the tools that send it in `issued_by`",
            )


def _paths(policy: Policy) -> Iterator[BrokenInvariant]:
    for role in policy.roles.values():
        files = role.files
        found = [(scope, problem_of_scope(scope)) for scope in (*files.read, *files.write)]
        found += [(pattern, problem_of_deny(pattern)) for pattern in files.deny]
        for path, problem in found:
            if problem:
                yield BrokenInvariant(
                    "paths",
                    Subject.ROLE,
                    role.name,
                    f"the path {path!r} is none: {problem}",
                    "write it relative to the company tree; '/' ends a folder",
                )


def _chain(policy: Policy) -> Iterator[BrokenInvariant]:
    for agent in policy.agents.values():
        if not agent.active:
            continue
        for above in agent.managers:
            if above == BOARD:
                continue
            manager = policy.agents[above]
            if policy.level_of(manager) >= policy.level_of(agent):
                yield BrokenInvariant(
                    "chain of command",
                    Subject.AGENT,
                    agent.handle,
                    f"{above} (level {policy.level_of(manager)}) cannot manage level "
                    f"{policy.level_of(agent)}",
                    "name a manager of a higher rank (a lower level number)",
                )
            if policy.role_of(manager).kind is Kind.WORKER:
                yield BrokenInvariant(
                    "chain of command",
                    Subject.AGENT,
                    agent.handle,
                    f"{above} is a worker and manages no agent",
                    "name a manager",
                )
            if above == agent.superior and agent.is_across_groups(manager):
                yield BrokenInvariant(
                    "chain of command",
                    Subject.AGENT,
                    agent.handle,
                    f"{above} is of the group {manager.group}, this agent of {agent.group}",
                    "name its leader, or a manager of no other group",
                )


def _leaders(policy: Policy) -> Iterator[BrokenInvariant]:
    leaders: Counter[str] = Counter()
    for agent in policy.agents.values():
        if agent.group and agent.active:
            leaders[agent.group] += agent.is_leader
    for group, count in leaders.items():
        if count != 1:
            yield BrokenInvariant(
                "exactly one leader",
                Subject.GROUP,
                group,
                f"group {group} has {count} leaders",
                "set `is_leader: true` on exactly one member",
            )
    for agent in policy.agents.values():
        if agent.is_leader and not agent.group:
            yield BrokenInvariant(
                "exactly one leader",
                Subject.AGENT,
                agent.handle,
                "leads no group",
                "name its group",
            )


def circle_in(reports_to: dict[str, str]) -> list[str]:
    """The handles of a circle in `reports_to`, or an empty list.

    Taken from what is written, not from the compiled chain, which would skip over it. A chain that
    was followed once is not followed again from below.
    """
    followed = set[str]()

    def above(handle: str) -> str | None:
        return None if handle in followed else reports_to.get(handle)

    for start in reports_to:
        chain = [start, *chain_of(start, above)]
        again = above(chain[-1])
        if again is not None:
            return chain[chain.index(again) :]
        followed.update(chain)
    return []


CHECKS: tuple[Callable[[Policy], Iterator[BrokenInvariant]], ...] = (
    _names,
    _kinds,
    _types,
    _forms,
    _aliases,
    _known_tools,
    _known_types,
    _tool_types,
    _paths,
    _chain,
    check_contacts,
    guarantees.one_top_agent,
    guarantees.way_up,
    guarantees.builtin_tools,
    guarantees.protected_paths,
    separation.contracts,
    separation.judges,
    separation.responsible,
    _leaders,
    separation.single_entry,
    separation.skills,
)
