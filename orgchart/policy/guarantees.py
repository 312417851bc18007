"""What no change can take from an agent, or give it: its way up, its built-ins, protected paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.paths import denying_pattern, is_within
from orgchart.policy.protected import CI_TOOL, HOME, HOMES, PROTECTED, PROTECTED_CI
from orgchart.policy.violation import BrokenInvariant, Subject
from orgchart.policy.vocabulary import BOARD, ESCALATION, Kind
from orgchart.policy.way_up import ESCALATE, SEND_MAIL, tool_to_escalate

WORKSPACE = "workspace"


def one_top_agent(policy: Policy) -> Iterator[BrokenInvariant]:
    """Exactly one agent is directly under the Board, or one leader for each group."""
    active = [agent for agent in policy.agents.values() if agent.active]
    tops = sorted(agent.handle for agent in active if agent.superior == BOARD)
    if len(tops) == 1 or not policy.agents:
        return
    if active and all(policy.agents[handle].is_leader for handle in tops):
        return
    yield BrokenInvariant(
        "one top agent",
        Subject.AGENT,
        tops[0] if tops else min(policy.agents),
        f"{', '.join(tops) or 'no active agent'}: exactly one agent is directly under the Board",
        "let the others report to an agent; to replace the top agent, change the one that is there",
    )


def way_up(policy: Policy) -> Iterator[BrokenInvariant]:
    """Every agent below the top can escalate to its direct superior (Spec: escalation 2).

    An agent whose own superior is deactivated escalates to the next above, or keeps what it could
    do before: its try tells the next above that it needs a superior (Spec: escalation 7).
    """
    for agent in policy.agents.values():
        if not agent.active or agent.superior == BOARD or tool_to_escalate(agent, policy):
            continue
        before = replace(agent, managers=(agent.reports_to,)) if agent.orphaned else agent
        if not tool_to_escalate(before, policy):
            problem = problem_of_way_up(policy, before)
            yield BrokenInvariant(
                "way up",
                Subject.AGENT,
                agent.handle,
                f"it could not escalate to {before.superior}: {problem}",
                f"choose a superior that it reaches, or leave its role {agent.role} {ESCALATE} or "
                f"{SEND_MAIL}, and a contact rule to {policy.agents[before.superior].role} that "
                f"carries {ESCALATION}",
            )


def problem_of_way_up(policy: Policy, agent: Agent) -> str:
    """Why no escalation of the agent reaches its superior (an agent, not the Board)."""
    above = policy.agents[agent.superior]
    rule = policy.rule_between(agent, above)
    if rule is None:
        return f"no contact rule leads from {agent.role} to {above.role}"
    if rule.needs_contract or not policy.carries_up(agent, ESCALATION):
        return f"the rule {rule.label} does not carry {ESCALATION}"
    if ESCALATION not in policy.sendable_types(agent, above.handle, rule):
        return f"it has no {ESCALATE}, and {SEND_MAIL} does not send {ESCALATION}"
    return f"it can use neither {ESCALATE} nor {SEND_MAIL} in every mode"


def builtin_tools(policy: Policy) -> Iterator[BrokenInvariant]:
    """No role and no restriction takes a built-in tool away (Spec: tools 5)."""
    builtin = {n for n, entry in catalogue.known().items() if entry.source is Source.BUILTIN}
    for role in policy.roles.values():
        for tool in sorted(role.denied_tools & builtin):
            yield _builtin(Subject.ROLE, role.name, tool)
    for scope, tool in sorted(policy.tool_restrictions):
        if tool in builtin:
            kind = Subject.AGENT if scope.startswith("agent:") else Subject.ROLE
            yield _builtin(kind, scope.partition(":")[2] or scope, tool)


def _builtin(kind: Subject, subject: str, tool: str) -> BrokenInvariant:
    return BrokenInvariant(
        "built-in tools",
        kind,
        subject,
        f"{tool} is built in: every agent keeps it",
        f"leave {tool} out; its own rules decide each call",
    )


def protected_paths(policy: Policy) -> Iterator[BrokenInvariant]:
    """No role's scope names what is denied to every role (Spec: files 3).

    The denials themselves are part of every compiled role, whatever its row says.
    """
    for role in policy.roles.values():
        for path in (*role.files.read, *role.files.write):
            problem = _problem_of_scope(role, path)
            if problem:
                yield BrokenInvariant(
                    "protected denials",
                    Subject.ROLE,
                    role.name,
                    f"the path {path} is protected: {problem}",
                    "take it out of the role's files",
                )


def _problem_of_scope(role: Role, path: str) -> str:
    if denying_pattern(path, PROTECTED):
        return "secrets and git's own folder are denied to every role"
    if is_within(path, HOMES) and not is_within(path, HOME) and not _oversees(role, path):
        return f"an agent's home is its own; write {HOME}"
    if (
        CI_TOOL not in role.tools
        and path in role.files.write
        and denying_pattern(path, PROTECTED_CI)
    ):
        return f"only a role with {CI_TOOL} changes CI files"
    return ""


def _oversees(role: Role, path: str) -> bool:
    """Whether it is a manager's look into one agent's workspace (Spec: files 1)."""
    parts = path.split("/")
    into_workspace = len(parts) > 2 and parts[2] == WORKSPACE
    return role.kind is Kind.MANAGER and path not in role.files.write and into_workspace
