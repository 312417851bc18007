"""A pack as one value, and the Policy that it makes before any database knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orgchart.organisation_settings import enabled_modes, merged
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import (
    Agent,
    ContactRule,
    Group,
    MailTypeRule,
    Policy,
    Role,
    ToolRestriction,
)
from orgchart.policy.parties import active_superior
from orgchart.policy.vocabulary import BOARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """One agent of a pack."""

    handle: str
    role: str
    title: str = ""
    active: bool = True
    reports_to: str = BOARD
    co_managers: tuple[str, ...] = ()
    group: str = ""
    name: str = ""
    is_leader: bool = False
    skills: tuple[str, ...] = ()
    system_prompt: str = ""
    job_description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackToolRestriction:
    """A restriction of a tool, and why; it never adds a mode."""

    restriction: ToolRestriction
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Everything the files of a pack say. Sets of names are kept in the order written."""

    organisation: str
    name: str
    description: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    tool_restrictions: tuple[PackToolRestriction, ...] = ()
    roles: tuple[Role, ...] = ()
    groups: tuple[Group, ...] = ()
    staff: tuple[Staff, ...] = ()
    mail_types: tuple[MailTypeRule, ...] = ()
    contacts: tuple[ContactRule, ...] = ()


def policy_of(pack: Pack) -> Policy:
    """The Policy that a new organisation has after loading the pack; its names must all resolve."""
    reports_to = {one.handle: one.reports_to for one in pack.staff}
    active = {one.handle for one in pack.staff if one.active}
    return build_policy(
        organisation_id=0,
        organisation=pack.organisation,
        version=0,
        roles=list(pack.roles),
        agents=[
            Agent(
                id=number,
                handle=one.handle,
                role=one.role,
                title=one.title,
                active=one.active,
                reports_to="" if one.reports_to == BOARD else one.reports_to,
                managers=(
                    active_superior(one.handle, reports_to.get, active),
                    *sorted(one.co_managers),
                ),
                group=one.group,
                name=one.name,
                is_leader=one.is_leader,
                skills=frozenset(one.skills),
                system_prompt=one.system_prompt,
            )
            for number, one in enumerate(pack.staff, 1)
        ],
        groups=list(pack.groups),
        mail_types=list(pack.mail_types),
        contacts=list(pack.contacts),
        aliases=pack.aliases,
        settings=merged(pack.settings),
        enabled_modes=enabled_modes(pack.settings),
        tool_restrictions=[given.restriction for given in pack.tool_restrictions],
    )
