"""Whose memory it is: an agent's, a group's or the organisation's."""

from __future__ import annotations

from dataclasses import dataclass

from documents.memory import rules
from documents.models import Memory
from orgchart.policy.compiled import Agent, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOwner:
    """One memory: its scope, the agent or group that it belongs to, and its file."""

    organisation_id: int
    organisation: str
    scope: str
    path: str
    agent_id: int | None = None
    group: str = ""


def owner_of(scope: str, agent: Agent, policy: Policy) -> MemoryOwner:
    """The memory of a scope as an agent sees it."""
    return MemoryOwner(
        organisation_id=policy.organisation_id,
        organisation=policy.organisation,
        scope=scope,
        path=rules.file_of(scope, agent),
        agent_id=agent.id if scope == rules.AGENT else None,
        group=agent.group if scope == rules.GROUP else "",
    )


def organisation_memory(policy: Policy) -> MemoryOwner:
    """The memory that all agents of an organisation share."""
    return MemoryOwner(
        organisation_id=policy.organisation_id,
        organisation=policy.organisation,
        scope=rules.ORGANISATION,
        path=rules.ORGANISATION_FILE,
    )


def owner_of_row(row: Memory) -> MemoryOwner:
    """The memory that an entry belongs to."""
    path = rules.ORGANISATION_FILE
    if row.agent is not None:
        path = rules.agent_file(row.agent.handle)
    elif row.group is not None:
        path = rules.group_file(row.group.slug)
    return MemoryOwner(
        organisation_id=row.organisation_id,
        organisation=row.organisation.slug,
        scope=row.scope,
        path=path,
        agent_id=row.agent_id,
        group=row.group.slug if row.group else "",
    )
