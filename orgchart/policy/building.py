"""From the lists of an organisation to the indexed Policy that decisions are made over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orgchart.policy.compiled import (
    Agent,
    ContactRule,
    Group,
    MailTypeRule,
    Policy,
    Role,
    ToolRestriction,
)
from orgchart.policy.protected import protected_from_writing, with_protected
from orgchart.policy.vocabulary import ToolMode


def build_policy(  # noqa: PLR0913  the parts of a policy, each by its name
    *,
    organisation_id: int,
    organisation: str,
    version: int,
    roles: list[Role],
    agents: list[Agent],
    groups: list[Group],
    mail_types: list[MailTypeRule],
    contacts: list[ContactRule],
    aliases: Mapping[str, str],
    settings: Mapping[str, Any],
    enabled_modes: frozenset[ToolMode],
    tool_restrictions: list[ToolRestriction] | None = None,
) -> Policy:
    """Compile lists into the indexed Policy. An alias never shadows a handle or an address."""
    roles = [_with_protected(role) for role in roles]
    agents = _with_workers(agents)
    names = dict(aliases)
    names |= {agent.address: agent.handle for agent in agents}
    names |= {agent.handle: agent.handle for agent in agents}
    known = {agent.handle for agent in agents}
    ceilings = {
        role.name: frozenset(t.name for t in mail_types if t.may_come_from(role)) for role in roles
    }
    holders: defaultdict[str, set[str]] = defaultdict(set)
    below: defaultdict[str, set[str]] = defaultdict(set)
    for agent in agents:
        if agent.active:
            holders[agent.role].add(agent.handle)
        for manager in (agent.reports_to, *agent.managers):
            below[manager].add(agent.handle)
    restrictions: dict[tuple[str, str], frozenset[ToolMode]] = {}
    for item in tool_restrictions or []:
        key = (item.scope, item.tool)
        restrictions[key] = restrictions.get(key, item.modes) & item.modes
    return Policy(
        organisation_id=organisation_id,
        organisation=organisation,
        version=version,
        roles={r.name: r for r in roles},
        agents={a.handle: a for a in agents},
        names={name: handle for name, handle in names.items() if handle in known},
        groups={g.slug: g for g in groups},
        mail_types={t.name: t for t in mail_types},
        contacts={(c.sender, c.recipient): c for c in contacts},
        enabled_modes=enabled_modes,
        settings=dict(settings),
        tool_restrictions=restrictions,
        ceilings=ceilings,
        by_id={a.id: a for a in agents},
        aliases=dict(aliases),
        holders={role: frozenset(handles) for role, handles in holders.items()},
        below={manager: frozenset(handles) for manager, handles in below.items()},
    )


def _with_workers(agents: list[Agent]) -> list[Agent]:
    """The agents, each with those that it manages: a moved agent has other managers at once."""
    workers: defaultdict[str, list[str]] = defaultdict(list)
    for agent in agents:
        for manager in agent.managers:
            workers[manager].append(agent.handle)
    return [
        replace(agent, workers=tuple(sorted(workers[agent.handle])))
        if agent.handle in workers
        else agent
        for agent in agents
    ]


def _with_protected(role: Role) -> Role:
    files = replace(
        role.files,
        deny=with_protected(role.files.deny),
        deny_write=protected_from_writing(role.tools - role.denied_tools),
    )
    return role if files == role.files else replace(role, files=files)
