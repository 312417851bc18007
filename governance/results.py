"""What the tools of HR and managers answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from orgchart.policy.vocabulary import ToolMode

PolicyVersion = Annotated[int, Field(description="the organisation's policy after this call")]


@wire_result
class HiredAgent(TypedDict):
    """An agent that was hired; people issue its key."""

    agent: str
    address: str
    policy_version: PolicyVersion


@wire_result
class DescribedAgent(TypedDict):
    """An agent whose title, job description or skills changed."""

    agent: str
    policy_version: PolicyVersion


@wire_result
class OpenWorkResult(TypedDict):
    """What a deactivated agent left open; HR's agent gets the ids of what it may read."""

    contracts_assigned: list[str]
    contracts_issued: list[str]
    tasks: list[str]
    unread_mails: int
    reports: Annotated[list[str], Field(description="active agents that reported to it")]


@wire_result
class DeactivatedAgent(TypedDict):
    """An agent that was deactivated."""

    agent: str
    holds: OpenWorkResult
    handed_to: Annotated[str, Field(description="its superior: a handle, or board")]
    policy_version: PolicyVersion


@wire_result
class ChangedOrgChart(TypedDict):
    """Agents that were moved, and what the new policy allows and forbids."""

    agents: list[str]
    policy_version: PolicyVersion
    newly_allowed: list[str]
    newly_forbidden: list[str]


@wire_result
class ListedAgent(TypedDict):
    """One agent of the organisation."""

    agent: str
    address: str
    role: str
    level: int
    title: str
    active: bool
    reports_to: str
    co_managers: list[str]
    group: str | None
    is_leader: bool
    skills: list[str]
    job_description: str


@wire_result
class AgentPage(TypedDict):
    """A page of the organisation's agents, newest first."""

    agents: list[ListedAgent]
    next_cursor: str | None
    policy_version: PolicyVersion


@wire_result
class ListedToolRestriction(TypedDict):
    """One tool that a manager restricted for an agent."""

    agent: str
    tool: str
    modes: Annotated[list[ToolMode], Field(description="the modes that are left")]
    set_by: str
    reason: Annotated[str, Field(description="empty where its writer may not write to you")]
    at: datetime


@wire_result
class ToolRestrictions(TypedDict):
    """A page of the tool restrictions of the caller's workers, newest first."""

    tightened: list[ListedToolRestriction]
    next_cursor: str | None
    policy_version: PolicyVersion


@wire_result
class ChangedTool(TypedDict):
    """A tool that was restricted or restored for an agent."""

    agent: str
    tool: str
    modes: Annotated[
        list[ToolMode] | None, Field(description="the modes that are left; null: restored")
    ]
    policy_version: PolicyVersion
