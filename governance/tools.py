"""What HR and managers can do with the organisation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StringConstraints

from core.decision import Code, refuse
from core.paging import DEFAULT_LIMIT, MAX_LIMIT
from core.params import (
    Cursor,
    Handle,
    Name,
    Params,
    Reason,
    Title,
    Version,
)
from governance.staff import chart, hiring, leaving, listing, tightening
from orgchart.policy.vocabulary import ToolGroup, ToolMode
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

T = TypeVar("T")
Job = Annotated[str, StringConstraints(min_length=1, max_length=50_000, pattern=r"\S")]
Skills = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=64)]], Field(max_length=50)
]
EXPECTED = Field(None, description="policy_version that you saw; another one refuses the change")


class CreateAgentJd(Params):
    """A new agent and its job description (seed 000 §1.4)."""

    handle: Handle
    role: Name
    title: Title
    job_description: Job
    reports_to: Name | None = Field(
        None, description="absent: whom the other holders of the role report to"
    )
    co_managers: Annotated[list[Name], Field(max_length=20)] = Field(default_factory=list)
    group: Name | None = None
    name: Handle | None = Field(None, description="its name in the group: address group.name")
    skills: Skills = Field(default_factory=list)
    expected_policy_version: Version | None = EXPECTED


@tool("create_agent_jd", params=CreateAgentJd, group=ToolGroup.ORGANISATION, modes=ANY_MODE)
def create_agent_jd(caller: Caller, params: CreateAgentJd, now: datetime) -> dict[str, Any]:
    """Hire an agent into a role. Needs an org_change contract of the CEO in progress."""
    hire = hiring.Hire(**params.model_dump(exclude={"expected_policy_version"}))
    return hiring.hire_agent(
        caller=caller, hire=hire, expected_version=params.expected_policy_version, now=now
    )


class UpdateAgentJd(Params):
    """What is new about an agent; what is absent stays."""

    agent: Name
    title: Title | None = None
    job_description: Job | None = None
    skills: Skills | None = None
    expected_policy_version: Version | None = EXPECTED


@tool(
    "update_agent_jd",
    params=UpdateAgentJd,
    group=ToolGroup.ORGANISATION,
    modes=ANY_MODE,
    destructive=True,
)
def update_agent_jd(caller: Caller, params: UpdateAgentJd, now: datetime) -> dict[str, Any]:
    """Change an agent's title, job description or skills. Needs an org_change contract."""
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
    params=DeactivateAgent,
    group=ToolGroup.ORGANISATION,
    modes=ANY_MODE,
    destructive=True,
    idempotent=True,
)
def deactivate_agent(caller: Caller, params: DeactivateAgent, now: datetime) -> dict[str, Any]:
    """Deactivate an agent; what it holds goes to its superior. Needs an org_change contract."""
    return leaving.deactivate_agent(
        caller=caller,
        agent=params.agent,
        reason=params.reason,
        expected_version=params.expected_policy_version,
        now=now,
    )


class Change(Params):
    """One agent's new place; what is absent stays."""

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

    changes: Annotated[list[Change], Field(min_length=1, max_length=50)]
    reason: Reason
    expected_policy_version: Version | None = EXPECTED


@tool(
    "update_org_chart",
    params=UpdateOrgChart,
    group=ToolGroup.ORGANISATION,
    modes=ANY_MODE,
    destructive=True,
)
def update_org_chart(caller: Caller, params: UpdateOrgChart, now: datetime) -> dict[str, Any]:
    """Move agents in the chain of command, all or none. Needs an org_change contract."""
    return chart.update_org_chart(
        caller=caller,
        moves=[chart.Move(**change.model_dump()) for change in params.changes],
        reason=params.reason,
        expected_version=params.expected_policy_version,
        now=now,
    )


class ListAgents(Params):
    """A page of the organisation's agents."""

    role: Name | None = None
    active: bool | None = None
    group: Name | None = None
    cursor: Cursor | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


@tool(
    "list_agents", params=ListAgents, group=ToolGroup.ORGANISATION, modes=ANY_MODE, read_only=True
)
def list_agents(caller: Caller, params: ListAgents, now: datetime) -> dict[str, Any]:
    """List the organisation's agents with their roles, places and job descriptions."""
    return listing.list_agents(caller=caller, wanted=listing.Wanted(**params.model_dump()))


class ManageTools(Params):
    """Tightening, for one's own workers (seed 000 §1.3, seed 002 §3.1)."""

    action: Literal["list", "tighten", "restore"]
    agent: Name | None = None
    tool: Name | None = None
    modes: list[Literal["chat_safe", "coding"]] | None = Field(
        None, max_length=2, description="to tighten: what stays; [] takes the tool away"
    )
    reason: Reason | None = None
    expected_policy_version: Version | None = EXPECTED


@tool(
    "manage_tools",
    params=ManageTools,
    group=ToolGroup.ORGANISATION,
    modes=ANY_MODE,
    destructive=True,
)
def manage_tools(caller: Caller, params: ManageTools, now: datetime) -> dict[str, Any]:
    """Tighten a tool of an agent that reports to you, restore it, or list what is tightened."""
    if params.action == "list":
        return tightening.list_tightened(caller=caller, agent=params.agent)
    if params.action == "restore":
        return tightening.restore_tool(
            caller=caller,
            agent=_given(params.agent, "agent"),
            tool=_given(params.tool, "tool"),
            reason=_given(params.reason, "reason"),
            expected_version=params.expected_policy_version,
            now=now,
        )
    return tightening.tighten_tool(
        caller=caller,
        agent=_given(params.agent, "agent"),
        tool=_given(params.tool, "tool"),
        modes=[ToolMode(mode) for mode in _given(params.modes, "modes")],
        reason=_given(params.reason, "reason"),
        expected_version=params.expected_policy_version,
        now=now,
    )


def _given(value: T | None, field: str) -> T:
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
