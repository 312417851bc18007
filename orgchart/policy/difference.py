"""What a change of policy permits and forbids, stated as facts that a person can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.policy import contact_difference
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.instructions import told_otherwise
from orgchart.policy.readership import filing_scope
from orgchart.policy.vocabulary import ContractScope, Kind


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
    lifted = frozenset(denials(before)) if before else frozenset()
    imposed = frozenset(denials(after))
    same = _same_agents(before, after) if before else frozenset()
    allowed = {*_gained(before, after, same), *(f"{each} (lifted)" for each in lifted - imposed)}
    if before:
        allowed |= {*told_otherwise(before, after), *_filed_elsewhere(before, after)}
    forbidden = {*_gained(after, before, same), *(imposed - lifted)}
    return Difference(tuple(sorted(allowed)), tuple(sorted(forbidden)))


def _same_agents(before: Policy, after: Policy) -> frozenset[str]:
    """The agents about which every fact is the same, apart from contacts and superiors.

    Most, after most changes: when a manager leaves, only the superior of its reports changes.
    """
    if (before.enabled_modes, before.tool_restrictions) != (
        after.enabled_modes,
        after.tool_restrictions,
    ):
        return frozenset()
    roles = {name for name, role in after.roles.items() if before.roles.get(name) == role}
    return frozenset(
        handle
        for handle, agent in after.agents.items()
        if agent.role in roles
        and (was := before.agents.get(handle)) is not None
        and _told_by(was) == _told_by(agent)
    )


def _told_by(agent: Agent) -> tuple[object, ...]:
    """What `_agent_facts` and `_builtins_of` say of an agent, apart from its role's own columns."""
    return agent.role, agent.active, agent.group, agent.is_leader, agent.skills


def _gained(before: Policy | None, after: Policy | None, same: frozenset[str]) -> Iterator[str]:
    """Everything that `after` permits and `before` does not; `same` agents have the same facts."""
    if after is None:
        return
    had = facts(before, same) if before else ()
    yield from frozenset(facts(after, same)).difference(had)
    owned = builtins(before, same) if before else ()
    yield from _together(frozenset(builtins(after, same)).difference(owned))
    yield from contact_difference.newly(before, after)
    yield from _names_led(before, after)
    yield from _left_by_leavers(before, after)
    for name, role in after.roles.items():
        if name not in after.holders:
            old = before.roles.get(name) if before else None
            for sentence in _gained_by_role(role, after, old, before):
                yield sentence + contact_difference.LATER


def _names_led(before: Policy | None, after: Policy) -> Iterator[str]:
    """Where `after` newly leads an alias or an address: mail to it has another reader."""
    for name, handle in after.names.items():
        if name != handle and (before is None or before.names.get(name) != handle):
            yield f"{name} leads to {handle}"


def _filed_elsewhere(before: Policy, after: Policy) -> Iterator[str]:
    """The roles whose reports get another folder, which others read (Spec: files 13)."""
    for name in before.roles.keys() & after.roles.keys():
        folder = filing_scope(before.roles[name])
        if folder and folder != filing_scope(after.roles[name]):
            yield f"reports of the department of {name} are no longer filed in {folder}"


def _left_by_leavers(before: Policy | None, after: Policy) -> Iterator[str]:
    """Where `after` newly puts deactivated agents: their place says who reads what they left.

    What others inherit when an agent is deactivated is not said of its own place.
    """
    for agent in after.agents.values():
        was = before.agents.get(agent.handle) if before else None
        if agent.active or was is None:
            continue
        for manager in agent.managers:
            if manager not in was.managers:
                yield f"{manager} reads what {agent.handle} left"
        if agent.role != was.role:
            yield f"{agent.handle} left as {agent.role}"
        if agent.group and (agent.group != was.group or agent.is_leader > was.is_leader):
            yield f"{agent.handle} left as a member of {agent.group}"


def _gained_by_role(
    role: Role, after: Policy, old: Role | None, before: Policy | None
) -> Iterator[str]:
    """What anybody who is given the role later may do that was not so before."""
    later = Agent(0, role.name, role.name, role.title)
    was = before if old else None
    yield from frozenset(_agent_facts(after, later)).difference(
        _agent_facts(was, later) if was else ()
    )
    yield from _together(
        frozenset(_builtins_of(after, later)).difference(_builtins_of(was, later) if was else ())
    )


def denials(policy: Policy) -> Iterator[str]:
    """Everything the policy forbids whatever else is allowed."""
    for role in policy.roles.values():
        for tool in role.denied_tools:
            yield f"{role.name} is denied {tool}"
        for path in role.files.deny:
            yield f"{role.name} is denied {path}"
        if role.permissions:  # without any, no permission limits it (Spec: tasks 40)
            yield f"{role.name} does with tasks what its permissions name"
    for task_type in policy.settings.get("approval_task_types", ()):
        yield f"tasks of type {task_type} wait for approval"
    enforcement = policy.settings.get("enforcement", "enforce")
    if enforcement == "enforce":
        yield "changes of tasks are refused without the required role and version"
    if enforcement != "off":
        yield "changes of tasks without the required role or version leave an event"


def facts(policy: Policy, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """What the policy permits, one sentence each: exact, finite, comparable.

    Contacts are in `contact_difference`, built-in tools in `builtins`. Of the agents `without` says
    only who manages them.
    """
    yield from _shared_facts(policy)
    for agent in policy.agents.values():
        if not agent.active:
            continue
        for manager in agent.managers:
            yield f"{manager} manages {agent.handle}"
        if agent.handle not in without:
            yield from _agent_facts(policy, agent)
    yield from _role_facts(policy)


def _role_facts(policy: Policy) -> Iterator[str]:
    """Which roles an active agent holds (Spec: tasks 22), and what each role is."""
    for held in policy.holders:
        yield f"tasks that require {held} have an agent that can take them"
    for role in policy.roles.values():
        if role.kind is not Kind.WORKER:
            yield f"{role.name} is of kind {role.kind}"
        if role.task_lead:
            yield f"{role.name} leads tasks"
        for name, value in role.permissions.items():
            yield f"{role.name} has {name} = {value}"
        for office in role.offices:
            yield f"{role.name} holds the office {office}"


def _shared_facts(policy: Policy) -> Iterator[str]:
    """What holds for every agent of the organisation or of a group."""
    for mode in policy.enabled_modes:
        yield f"sessions may be in {mode}"
    if policy.settings.get("task_visibility") == "all":
        yield "every agent may read every task"
    if policy.settings.get("allow_internal_addresses"):
        yield "notices may go to internal addresses"
    for group in policy.groups.values():
        if group.member_delegation:
            yield f"members of {group.slug} may delegate to each other"


def _agent_facts(policy: Policy, agent: Agent) -> Iterator[str]:
    """What one agent is and may do, its superiors aside."""
    role = policy.role_of(agent)
    yield f"{agent.handle} acts as {role.name} (level {role.level})"
    if agent.group:
        yield f"{agent.handle} {'leads' if agent.is_leader else 'is a member of'} {agent.group}"
    for skill in agent.skills - catalogue.known().keys():
        yield f"{agent.handle} has the skill {skill}"
    for tool in (role.tools | agent.skills) - role.denied_tools:
        yield from _tool_facts(policy, agent, tool)
    for path in role.files.write:
        yield f"{agent.handle} may write {path.replace('{agent}', agent.handle)}"
    for path in role.files.read:
        yield f"{agent.handle} may read {path.replace('{agent}', agent.handle)}"
    if role.files.contract is not ContractScope.NONE:
        yield f"{agent.handle} may {role.files.contract} the scope of its contracts"


def _tool_facts(policy: Policy, agent: Agent, tool: str) -> Iterator[str]:
    entry = catalogue.known().get(tool)
    modes = (entry.modes if entry else frozenset()) & policy.enabled_modes
    left = policy.restricted_modes(agent, tool)
    for mode in modes if left is None else modes & left:
        yield f"{agent.handle} may call {tool} in {mode}"


def builtins(policy: Policy, without: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Every active agent with each built-in tool that is not restricted for it."""
    for agent in policy.agents.values():
        if agent.active and agent.handle not in without:
            yield from _builtins_of(policy, agent)


def _builtins_of(policy: Policy, agent: Agent) -> Iterator[tuple[str, str]]:
    for name, entry in catalogue.known().items():
        if entry.source is Source.BUILTIN and policy.restricted_modes(agent, name) is None:
            yield agent.handle, name


def _together(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One sentence for each agent, however many built-ins it has."""
    for handle, found in groupby(sorted(pairs), key=itemgetter(0)):
        names = [name for _, name in found]
        yield f"{handle} has the built-in{'s' * (len(names) > 1)} {', '.join(names)}"
