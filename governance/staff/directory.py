"""The list of the organisation's agents."""

from __future__ import annotations

from dataclasses import dataclass

from core import paging
from governance.results import AgentPage, ListedAgent
from orgchart.models import Agent as AgentRow
from orgchart.policy.compiled import Agent
from toolbox.caller import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFilter:
    """Which agents to list; None means any."""

    role: str | None = None
    active: bool | None = None
    group: str | None = None
    cursor: str | None = None
    limit: int = paging.DEFAULT_LIMIT


def list_agents(*, caller: Caller, agent_filter: AgentFilter) -> AgentPage:
    """One page of the organisation's agents, newest first, with the policy version they are of.

    Raises Denied INVALID_PARAMS for a cursor that no list gave.
    """
    before = paging.number(agent_filter.cursor)
    found = [
        agent
        for agent in sorted(caller.policy.agents.values(), key=lambda a: -a.id)
        if (before is None or agent.id < before) and _matches(agent, agent_filter)
    ]
    page, more = paging.cut(found, agent_filter.limit, lambda agent: agent.id)
    jobs = dict(
        AgentRow.objects.filter(id__in=[a.id for a in page]).values_list("id", "job_description")
    )
    return {
        "agents": [_listed(caller, agent, jobs.get(agent.id, "")) for agent in page],
        "next_cursor": more,
        "policy_version": caller.policy.version,
    }


def _matches(agent: Agent, agent_filter: AgentFilter) -> bool:
    return (
        agent_filter.role in (None, agent.role)
        and agent_filter.active in (None, agent.active)
        and agent_filter.group in (None, agent.group)
    )


def _listed(caller: Caller, agent: Agent, job_description: str) -> ListedAgent:
    return {
        "agent": agent.handle,
        "address": agent.address,
        "role": agent.role,
        "level": caller.policy.level_of(agent),
        "title": agent.title,
        "active": agent.active,
        "reports_to": agent.superior,
        "co_managers": list(agent.managers[1:]),
        "group": agent.group or None,
        "is_leader": agent.is_leader,
        "skills": sorted(agent.skills),
        "job_description": job_description,
    }
