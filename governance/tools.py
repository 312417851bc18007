"""What HR and managers can do with the organisation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeVar

from pydantic import Field, StringConstraints

from core.decision import Code, refuse
from core.params import Handle, Name, Page, Params, Reason, Title, Version
from governance.cases import tools as case_tools  # noqa: F401  declares them
from governance.results import (
    AgentPage,
    ChangedOrgChart,
    ChangedTool,
    DeactivatedAgent,
    DescribedAgent,
    HiredAgent,
    ToolRestrictions,
)
from governance.staff import deactivation, directory, hiring, org_chart, tool_restrictions
from orgchart.policy.vocabulary import ToolGroup, ToolMode
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

T = TypeVar("T")
Job = Annotated[str, StringConstraints(min_length=1, max_length=50_000, pattern=r"\S")]
Skills = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=64)]], Field(max_length=50)
]
EXPECTED = Field(None, description="the policy_version you saw")


class CreateAgentJd(Params):
    """A new agent and its job description (Spec: organisation 34)."""

    handle: Handle
    role: Name = Field(description="an existing role; the handle itself: a new kind of worker")
    title: Title
    job_description: Job
    reports_to: Name | None = Field(
        None, description="absent: that of the role's other holders, or the only possible one"
    )
    co_managers: Annotated[list[Name], Field(max_length=20)] = Field(default_factory=list)
    group: Name | None = None
    name: Handle | None = Field(None, description="its name in the group: address group.name")
    skills: Skills = Field(default_factory=list)
    expected_policy_version: Version | None = EXPECTED


@tool("create_agent_jd", group=ToolGroup.ORGANISATION, modes=ANY_MODE)
def create_agent_jd(caller: Caller, params: CreateAgentJd, now: datetime) -> HiredAgent:
    """Hire an agent into a role. Needs an org_change contract of the CEO in progress."""
    hire = hiring.NewAgent(**params.model_dump(exclude={"expected_policy_version"}))
    return hiring.hire_agent(
        caller=caller, hire=hire, expected_version=params.expected_policy_version, now=now
    )


class UpdateAgentJd(Params):
    """What is new about an agent; absent fields stay as they are."""

    agent: Name
    title: Title | None = None
    job_description: Job | None = None
    skills: Skills | None = None
    expected_policy_version: Version | None = EXPECTED


@tool("update_agent_jd", group=ToolGroup.ORGANISATION, modes=ANY_MODE, destructive=True)
def update_agent_jd(caller: Caller, params: UpdateAgentJd, now: datetime) -> DescribedAgent:
    """Change an agent's title or job description, or take skills away. Needs an org_change
    contract.
    """
    return hiring.describe_agent(
        caller=caller,
        agent=params.agent,
        title=params.title,
        job_description=params.job_description,
        skills=params.skills,
        expected_version=params.expected_policy_version,
        now=now,
    )


class DeactivateAgent(Params):
    """An agent to deactivate."""

    agent: Name
    reason: Reason
    expected_policy_version: Version | None = EXPECTED


@tool(
    "deactivate_agent",
    group=ToolGroup.ORGANISATION,
    modes=ANY_MODE,
    destructive=True,
    idempotent=True,
)
def deactivate_agent(caller: Caller, params: DeactivateAgent, now: datetime) -> DeactivatedAgent:
    """Deactivate an agent; its open work goes to its superior. Needs an org_change contract."""
    return deactivation.deactivate_agent(
        caller=caller,
        agent=params.agent,
        reason=params.reason,
        expected_version=params.expected_policy_version,
        now=now,
    )


class AgentPlace(Params):
    """One agent's new place; absent fields stay as they are."""

    agent: Name
    reports_to: Name | None = None
    co_managers: Annotated[list[Name], Field(max_length=20)] | None = None
    role: Name | None = None
    group: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        None, description="'' leaves the group"
    )
    name: Handle | None = None
    is_leader: bool | None = None


class UpdateOrgChart(Params):
    """Moves that happen together or not at all."""

    changes: Annotated[list[AgentPlace], Field(min_length=1, max_length=50)]
    reason: Reason
    expected_policy_version: Version | None = EXPECTED


@tool("update_org_chart", group=ToolGroup.ORGANISATION, modes=ANY_MODE, destructive=True)
def update_org_chart(caller: Caller, params: UpdateOrgChart, now: datetime) -> ChangedOrgChart:
    """Move agents in the chain of command, all or none. Needs an org_change contract."""
    return org_chart.update_org_chart(
        caller=caller,
        moves=[org_chart.AgentMove(**change.model_dump()) for change in params.changes],
        reason=params.reason,
        expected_version=params.expected_policy_version,
        now=now,
    )


class ListAgents(Page):
    """A page of the organisation's agents."""

    role: Name | None = None
    active: bool | None = None
    group: Name | None = None


@tool("list_agents", group=ToolGroup.ORGANISATION, modes=ANY_MODE, read_only=True)
def list_agents(caller: Caller, params: ListAgents, now: datetime) -> AgentPage:
    """List the organisation's agents with their roles, places and job descriptions."""
    return directory.list_agents(
        caller=caller, agent_filter=directory.AgentFilter(**params.model_dump())
    )


class ManageTools(Page):
    """A tool restriction for an own worker (Spec: tools 15), or a page of all of them."""

    action: Literal["list", "tighten", "restore"]
    agent: Name | None = None
    tool: Name | None = None
    modes: list[Literal["chat_safe", "coding"]] | None = Field(
        None,
        max_length=2,
        description="modes left; [] takes it away",
    )
    reason: Reason | None = None
    expected_policy_version: Version | None = EXPECTED


@tool("manage_tools", group=ToolGroup.ORGANISATION, modes=ANY_MODE, destructive=True)
def manage_tools(
    caller: Caller, params: ManageTools, now: datetime
) -> ToolRestrictions | ChangedTool:
    """Restrict a tool of an own worker, restore it, or list restrictions."""
    if params.action == "list":
        return tool_restrictions.list_tool_restrictions(
            caller=caller, agent=params.agent, cursor=params.cursor, limit=params.limit
        )
    if params.action == "restore":
        return tool_restrictions.restore_tool(
            caller=caller,
            agent=_require_field(params.agent, "agent"),
            tool=_require_field(params.tool, "tool"),
            reason=_require_field(params.reason, "reason"),
            expected_version=params.expected_policy_version,
            now=now,
        )
    return tool_restrictions.restrict_tool(
        caller=caller,
        agent=_require_field(params.agent, "agent"),
        tool=_require_field(params.tool, "tool"),
        modes=[ToolMode(mode) for mode in _require_field(params.modes, "modes")],
        reason=_require_field(params.reason, "reason"),
        expected_version=params.expected_policy_version,
        now=now,
    )


def _require_field(value: T | None, field: str) -> T:
    """The value of a field that this action needs. Raises Denied INVALID_PARAMS."""
    if value is None:
        raise refuse(
            Code.INVALID_PARAMS,
            f"manage_tools: {field}: this action needs it",
            f"give {field}",
            rule="parameters of manage_tools",
            **{field: "is missing"},
        )
    return value
