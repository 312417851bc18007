"""Paths of memories, who reads and adds to them, names of artifacts; pure."""

from __future__ import annotations

import re

from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.paths import denying_pattern, normal_path
from orgchart.policy.readership import readable_writers
from orgchart.policy.vocabulary import Kind
from toolbox.frames.rules import delegators_of

AGENT, GROUP, ORGANISATION = "agent", "group", "organisation"
NAME = re.compile(r"[^\W_][\w. -]{0,118}[\w-]|[^\W_]")
"""A plain file name of any script: no slash, no leading dot, no blank at its end."""


ORGANISATION_FILE = "MEMORY.md"


def agent_file(handle: str) -> str:
    """The path of an agent's memory."""
    return f"agents/{handle}/MEMORY.md"


def group_file(slug: str) -> str:
    """The path of a group's memory."""
    return f"groups/{slug}/MEMORY.md"


def file_of(scope: str, agent: Agent) -> str:
    """The path of a memory in the company tree (Spec: memory 1)."""
    match scope:
        case "agent":
            return agent_file(agent.handle)
        case "group":
            return group_file(agent.group)
        case _:
            return ORGANISATION_FILE


def artifact_path(name: str, agent: Agent) -> str:
    """The path of an artifact in the company tree."""
    return f"agents/{agent.handle}/artifacts/{name}"


def can_read(scope: str, agent: Agent) -> Decision:
    """An agent reads its own, its group's and the organisation's memory, and no other."""
    if scope == GROUP and not agent.group:
        return deny(
            Code.SCOPE_DENIED,
            f"{agent.handle} is in no group, so there is no group memory for it",
            "use scope agent or organisation",
            rule="a group's memory is its members'",
        )
    return Allow(f"{scope} memory of {agent.address}")


def memory_writers(policy: Policy, reader: Agent) -> list[int]:
    """The ids of all whose entries an agent reads in a shared memory (Spec: memory 8).

    Of those whose text it may read, and of those that may delegate to it.
    """
    return [*readable_writers(policy, reader), *delegators_of(reader, policy)]


def can_append(scope: str, agent: Agent, policy: Policy) -> Decision:
    """Agents add to their own memory, members to their group's, leaders to the organisation's."""
    readable = can_read(scope, agent)
    if scope != ORGANISATION or not isinstance(readable, Allow):
        return readable
    if agent.is_leader or policy.roles[agent.role].kind is Kind.EXECUTIVE:
        return Allow("leaders and executives add to the organisation's memory")
    return deny(
        Code.LEVEL_DENIED,
        f"{agent.handle} neither leads a group nor is an executive",
        "append to scope agent"
        + (" or group" if agent.group else "")
        + f", or tell {agent.superior} what the organisation should remember",
        rule="leaders and executives add to the organisation's memory",
    )


def can_save(name: str, agent: Agent, policy: Policy) -> Decision:
    """An artifact has a plain file name that no prohibition of its role catches."""
    path = artifact_path(name, agent)
    caught = denying_pattern(path, policy.roles[agent.role].files.deny)
    if NAME.fullmatch(name) is None or not isinstance(normal_path(path), str):
        problem = "must be a plain file name, such as report.md"
    elif caught:
        problem = f"is denied to {agent.role} ({caught})"
    else:
        return Allow(f"artifacts of {agent.handle}")
    return deny(
        Code.SCOPE_DENIED,
        f"the name {name[:64]!r} {problem}",
        "choose another name: letters, digits, '.', '-', '_' and blanks, 120 at most",
        rule="names of artifacts",
    )
