"""What HR and managers may change about which agents: pure (Spec: organisation 33)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.issuing.changes import SoughtLine
from contracts.vocabulary import OrgAct
from core.decision import Allow, Code, Decision, deny, listed
from orgchart.catalogue import CatalogueEntry, Source
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.instructions import orders_changes
from orgchart.policy.readership import may_contact
from orgchart.policy.separation import JUDGES, ORGANISATION_TOOLS
from orgchart.policy.vocabulary import BOARD, KINDS, RESERVED, Kind, ToolMode

MOST_RESTRICTIONS = 200
"""Tool restrictions that an agent changes within an hour."""
LEADER = "leader"
"""A name in a group that says nothing but a place."""
PEOPLE = "tell your superior: only people change this, in the admin"


def runs_organisation(role: Role) -> bool:
    """Whether a role's holders change the organisation (Spec: organisation 31)."""
    return bool(role.tools & ORGANISATION_TOOLS)


def can_manage(who: Agent, target: Agent, policy: Policy) -> Decision:
    """Decide whether an agent may change another's row: not its own, nor that of an agent above it
    or with its power to change the organisation. HR neither promotes nor removes itself.
    """
    problem = ""
    if target.handle == who.handle:
        problem = "an agent cannot change its own row"
    elif policy.level_of(target) < policy.level_of(who) or target.superior == BOARD:
        problem = f"{target.handle} is above {who.handle}"
    elif runs_organisation(policy.role_of(target)):
        problem = f"{target.handle} changes the organisation itself"
    if not problem:
        return Allow("changes of the organisation go downward (spec: organisation 33)")
    return deny(
        Code.LEVEL_DENIED,
        f"{who.handle} cannot change {target.handle}: {problem}",
        PEOPLE,
        rule="changes of the organisation go downward (spec: organisation 33)",
    )


def can_give_role(who: Agent, role: Role, policy: Policy) -> Decision:
    """Decide whether an agent may put another into a role: none above its own level, and none
    that changes the organisation.
    """
    problem = ""
    if role.level < policy.level_of(who):
        problem = f"level {role.level} is above {who.handle}'s own"
    elif runs_organisation(role):
        problem = "its holders change the organisation"
    if not problem:
        return Allow("changes of the organisation go downward (spec: organisation 33)")
    return deny(
        Code.LEVEL_DENIED,
        f"{who.handle} cannot give the role {role.name}: {problem}",
        PEOPLE,
        rule="an agent hires at or below its own level (spec: organisation 33)",
    )


def line_of(
    act: OrgAct,
    subject: str,
    role: Role,
    old: Agent | None,
    *,
    superior: str,
    co_managers: Iterable[str] = (),
    skills: Iterable[str] = (),
    group: str = "",
    is_leader: bool = False,
) -> SoughtLine:
    """The line of a contract that lets an agent into a role and a place (Spec: contracts 51).

    Of an agent that changes its role, and of one that is hired to lead, judge or approve the work
    of others, the line names the role; of an agent that is moved below another one the superior;
    of each the co-managers and skills that it gets, and the group that it comes into or comes to
    lead (Spec: contracts 55).
    """
    comes_to_lead = is_leader and not (old is not None and old.is_leader and old.group == group)
    comes_into = old is None or old.group != group
    is_worker = role.kind is Kind.WORKER and not role.tools & JUDGES.keys()
    is_same_role = old is not None and role.name == old.role
    return SoughtLine(
        act,
        subject,
        role="" if is_same_role else role.name,
        is_role_named=not is_same_role and (old is not None or not is_worker),
        reports_to=superior,
        is_superior_named=old is not None and superior != old.superior,
        co_managers=frozenset(co_managers) - frozenset(old.managers[1:] if old else ()),
        skills=frozenset(skills) - (old.skills if old else frozenset()),
        group=group if comes_into else "",
        leads=group if comes_to_lead else "",
    )


def can_name(name: str, role: Role, policy: Policy) -> Decision:
    """Decide whether a new agent may have this handle or address: one that is free.

    The name of another role is refused: a task that requires that role would accept the agent.
    """
    if name in RESERVED or name in policy.names or (name in policy.roles and name != role.name):
        return deny(
            Code.INVALID_PARAMS,
            f"handle: {name} is the name of another agent or role",
            "choose a name that no agent, address, alias or other role has",
            rule="one name, one agent",
            handle="is the name of another agent or role",
        )
    return Allow("a name of its own")


def can_name_in_group(name: str, handle: str) -> Decision:
    """Decide whether HR may give an agent this name in its group: a part of its handle, which a
    contract of the CEO names. Free words would be a message to the group (Spec: contracts 58).
    """
    if name in handle or name == LEADER:
        return Allow("a name taken from the handle (spec: contracts 58)")
    return deny(
        Code.INVALID_PARAMS,
        f"name: {name} is no part of the handle {handle}",
        f"choose a part of {handle}, or {LEADER}",
        rule="a name in a group is a part of the handle (spec: contracts 58)",
        name="is no part of the handle",
    )


def can_name_kind(name: str, policy: Policy) -> Decision:
    """Decide whether a new kind of worker may have this name: one that nothing else has."""
    if name in RESERVED | KINDS or name in policy.names:
        return deny(
            Code.INVALID_PARAMS,
            f"role: {name} is the name of an agent or of a kind",
            f"name an existing role ({listed(sorted(policy.roles))}), or choose another name",
            rule="one name, one role",
            role="is the name of an agent or of a kind",
        )
    return Allow("a new kind of worker")


def can_give_skills(skills: Iterable[str], known: Mapping[str, CatalogueEntry]) -> Decision:
    """Decide whether HR may give these skills: never a tool that roles, offices or the system bind.

    Only the matrix of roles binds a role's tools (Spec: tools 4).
    """
    tools = sorted(s for s in skills if s in known and known[s].source is not Source.SKILL)
    if not tools:
        return Allow("skills")
    return deny(
        Code.LEVEL_DENIED,
        f"{', '.join(tools)[:200]}: no skill, but a tool that roles bind",
        "leave it out; people decide which role has which tool",
        rule="role tools come with the role (spec: tools 4)",
    )


def can_make_co_managers(who: Agent, names: Iterable[str]) -> Decision:
    """Decide whether an agent may make these agents co-managers: never itself.

    A co-manager reads the work of the agent. Spec: organisation 33.
    """
    if who.handle not in names:
        return Allow("co-managers other than itself")
    return deny(
        Code.LEVEL_DENIED,
        f"{who.handle} cannot make itself a co-manager",
        PEOPLE,
        rule="changes of the organisation go downward (spec: organisation 33)",
    )


def can_describe(added: Iterable[str]) -> Decision:
    """Decide whether an act `describe` may add these skills: none, because a skill gives rights.

    (Spec: organisation 35)
    """
    names = ", ".join(sorted(added))[:200]
    if not names:
        return Allow("a description gives no right")
    return deny(
        Code.AUTHORISATION_REQUIRED,
        f"{names}: a line describe gives no skill",
        "leave it out; a person gives skills, and a second person confirms them",
        rule="a description gives no right (spec: organisation 35)",
    )


def can_instruct(agent: Agent, role: Role) -> Decision:
    """Decide whether a contract may allow a person to write the system prompt of an agent.

    Not of one that orders changes: no tool of the contract's assignee writes it (Spec: people 60).
    """
    if not orders_changes(role):
        return Allow("a system prompt gives no right")
    return deny(
        Code.AUTHORISATION_REQUIRED,
        f"{agent.handle} orders changes: no contract allows other instructions of it",
        "leave the contract out; a second person then confirms the change",
        rule="no person alone instructs an agent that orders changes (spec: people 60)",
    )


def can_restrict_tools(who: Agent, target: Agent) -> Decision:
    """Decide whether a manager may restrict an agent's tools: its own workers' (Spec: tools 15)."""
    if target.handle != who.handle and who.handle in target.managers:
        return Allow("a manager restricts its own workers' tools (spec: tools 15)")
    return deny(
        Code.NOT_YOURS,
        f"{target.handle} does not report to {who.handle}",
        "name an agent that reports to you; manage_tools with action list shows the restrictions",
        rule="a manager restricts its own workers' tools (spec: tools 15)",
    )


def can_restrict_again(who: Agent, in_last_hour: int) -> Decision:
    """Decide whether a manager may change another restriction now (Spec: tools 15).

    Each is another version of the organisation, on which no form that a person has open is saved.
    """
    if in_last_hour < MOST_RESTRICTIONS:
        return Allow("a manager restricts its own workers' tools (spec: tools 15)")
    return deny(
        Code.RATE_LIMITED,
        f"{who.handle} has changed {MOST_RESTRICTIONS} tool restrictions within an hour",
        "wait an hour; manage_tools with action list shows the restrictions",
        rule="people can change the organisation meanwhile (spec: tools 15)",
        retry_after=3600,
    )


def can_restrict_to(
    tool: str,
    modes: frozenset[ToolMode],
    entry: CatalogueEntry | None,
    held: frozenset[ToolMode] | None,
) -> Decision:
    """Decide whether a restriction may leave a tool these modes: fewer, never more.

    Spec: tools 14.

    `held` are the modes that the present restriction leaves; None without one.
    """
    if entry is None:
        return _refuse_modes(tool, "there is no such tool", tool="there is no such tool")
    if entry.source is Source.BUILTIN:
        return _refuse_modes(tool, "it is built in and cannot be restricted", tool="is built in")
    most = entry.modes if held is None else entry.modes & held
    loose = modes - most
    if loose:
        return _refuse_modes(
            tool,
            f"that would add modes: {', '.join(sorted(loose))} is not among "
            f"{', '.join(sorted(most)) or 'no modes'}",
            modes="a restriction never adds modes",
        )
    return Allow("a restriction (spec: tools 14)")


def can_change_restriction(who: Agent, target: Agent, set_by: str, policy: Policy) -> Decision:
    """Decide whether a manager may change the restriction of an agent that it manages.

    One that it set itself or one of its workers did, and one of an agent that neither manages the
    restricted agent any more nor is above it (Spec: tools 15).
    """
    below = {f"agent:{worker.handle}" for worker in policy.workers_of(who)}
    other = policy.agents.get(set_by.removeprefix("agent:"))
    has_left = other is not None and not policy.is_above(other, target)
    if set_by == f"agent:{who.handle}" or set_by in below or has_left:
        return Allow("the manager that restricted a tool may restore it")
    reached = other is not None and other.active and may_contact(policy, who, other)
    return deny(
        Code.NOT_YOURS,
        f"{set_by} restricted this tool; {who.handle} cannot change that",
        f"ask {other.handle if other and reached else who.superior}",
        rule="the manager that restricted a tool may restore it",
    )


def _refuse_modes(name: str, /, problem: str, **fields: str) -> Decision:
    return deny(
        Code.INVALID_PARAMS,
        f"{name[:64]} cannot be restricted to that: {problem}",
        "name a role's tool, and fewer modes than it has; no modes take it away",
        rule="restrictions only remove modes (spec: tools 14)",
        **fields,
    )
