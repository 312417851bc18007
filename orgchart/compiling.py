"""From tables to the Policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern

from core.database import fetch_row
from orgchart import models
from orgchart.organisation_settings import enabled_modes, merged
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import (
    Agent,
    ContactRule,
    FileScopes,
    Group,
    MailTypeRule,
    Policy,
    Role,
    ToolRestriction,
)
from orgchart.policy.parties import active_superior
from orgchart.policy.vocabulary import BOARD, ContractScope, Kind, Office, Relation, ToolMode

VERSION = "SELECT policy_version FROM orgchart_organisation WHERE id = %s"


def compile_policy(organisation_id: int) -> Policy:
    """Read the organisation's tables and compile them.

    The version is read before and after, so that a policy never mixes two versions; inside a
    transaction that holds the organisation's row lock the first reading always agrees.
    """
    while True:
        organisation = models.Organisation.objects.get(id=organisation_id)
        try:
            policy = _compiled(organisation)
        except KeyError:  # of two versions: one names what the other has not
            if policy_version(organisation_id) == organisation.policy_version:
                raise
            continue
        if policy_version(organisation_id) == policy.version:
            return policy


def policy_version(organisation_id: int) -> int:
    """The version of the policy as committed now (or as written in this transaction)."""
    found: tuple[int] | None = fetch_row(VERSION, [organisation_id])
    if found is None:
        raise models.Organisation.DoesNotExist(f"there is no organisation {organisation_id}")
    return found[0]


def _compiled(organisation: models.Organisation) -> Policy:
    roles = list(organisation.roles.all())
    groups = list(organisation.groups.all())
    return build_policy(
        organisation_id=organisation.id,
        organisation=organisation.slug,
        version=organisation.policy_version,
        roles=[_role(r) for r in roles],
        agents=_agents(
            organisation,
            roles={role.id: intern(role.name) for role in roles},
            groups={group.id: intern(group.slug) for group in groups},
        ),
        groups=[Group(g.slug, g.name, g.context, g.member_delegation) for g in groups],
        mail_types=[_mail_type(t) for t in organisation.mail_types.all()],
        contacts=[
            ContactRule(
                sender=intern(sender),
                recipient=intern(recipient or BOARD),
                types=None if types is None else _set(types),
                needs_contract=needs_contract,
                relation=Relation(relation),
            )
            for sender, recipient, types, needs_contract, relation in (
                organisation.contacts.values_list(*CONTACT_COLUMNS)
            )
        ],
        aliases=dict(organisation.aliases.values_list("alias", "agent__handle")),
        settings=merged(organisation.settings),
        enabled_modes=enabled_modes(organisation.settings),
        tool_restrictions=[
            _tool_restriction(row) for row in organisation.overrides.select_related("role", "agent")
        ],
    )


SHARED = 4096
"""Characters of words that are kept for other policies, which may say the same: longer lists would
stay in memory behind every change of theirs."""


# Organisations of one pack say the same: in memory their words, and sets of words, are there once.
@lru_cache(maxsize=4096)
def _tuple_of(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(intern, words))


@lru_cache(maxsize=4096)
def _set_of(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(intern, words))


def _tuple(words: Iterable[str]) -> tuple[str, ...]:
    said = tuple(words)
    return _tuple_of(said) if _is_short(said) else tuple(map(intern, said))


def _set(words: Iterable[str]) -> frozenset[str]:
    said = tuple(words)
    return _set_of(said) if _is_short(said) else frozenset(map(intern, said))


def _is_short(words: tuple[str, ...]) -> bool:
    return sum(map(len, words)) <= SHARED


def _role(row: models.Role) -> Role:
    return Role(
        name=intern(row.name),
        title=intern(row.title),
        level=row.level,
        kind=Kind(row.kind),
        tools=_set(row.tools),
        denied_tools=_set(row.denied_tools),
        summary=intern(row.summary),
        prohibitions=_tuple(row.prohibitions),
        files=FileScopes(
            _tuple(row.files_read),
            _tuple(row.files_write),
            _tuple(row.files_deny),
            contract=ContractScope(row.files_contract),
        ),
        task_lead=row.task_lead,
        permissions=row.permissions,
        offices=frozenset(o for o in Office if o in row.offices),
    )


def _agents(
    organisation: models.Organisation, *, roles: Mapping[int, str], groups: Mapping[int, str]
) -> list[Agent]:
    """The agents, read without a model instance for each: a policy may have thousands."""
    rows = list(organisation.agents.values_list(*AGENT_COLUMNS, named=True))
    by_id = {row.id: row for row in rows}
    reports_to = {r.handle: intern(by_id[r.reports_to_id].handle) for r in rows if r.reports_to_id}
    active = {row.handle for row in rows if row.active}
    through = models.Agent.co_managers.through.objects.filter(from_agent__organisation=organisation)
    co_managers: dict[int, list[str]] = {}
    for one, other in through.values_list("from_agent_id", "to_agent_id"):
        co_managers.setdefault(one, []).append(by_id[other].handle)
    return [
        Agent(
            id=row.id,
            handle=intern(row.handle),
            role=roles[row.role_id],
            title=intern(row.title),
            active=row.active,
            reports_to=reports_to.get(row.handle, ""),
            managers=(
                active_superior(row.handle, reports_to.get, active),
                *sorted(co_managers.get(row.id, [])),
            ),
            group=groups[row.group_id] if row.group_id else "",
            name=intern(row.name),
            is_leader=row.is_leader,
            skills=_set(row.skills),
            system_prompt=intern(row.system_prompt),
        )
        for row in rows
    ]


AGENT_COLUMNS = (
    "id", "handle", "role_id", "title", "active", "reports_to_id", "group_id", "name", "is_leader",
    "skills", "system_prompt",
)  # fmt: skip

CONTACT_COLUMNS = ("sender__name", "recipient__name", "types", "needs_contract", "relation")


def _mail_type(row: models.MailTypeRule) -> MailTypeRule:
    return MailTypeRule(
        name=intern(row.name),
        senders=None if row.senders is None else _set(row.senders),
        issued_by=_tuple(row.issued_by),
        to_superior=row.to_superior,
        description=intern(row.description),
    )


def _tool_restriction(row: models.ToolOverride) -> ToolRestriction:
    if row.agent:
        scope = f"agent:{row.agent.handle}"
    else:
        scope = f"role:{row.role.name}" if row.role else "organisation"
    return ToolRestriction(scope, row.tool, frozenset(m for m in ToolMode if m in row.modes))
