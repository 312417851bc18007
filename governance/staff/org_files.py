"""company/org.yaml, company/chain-of-command.yaml and the job descriptions: files of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ref

import yaml

from core.actions import Action
from documents.files import tree_of, write_file, write_file_on_commit
from documents.tree import Missing, TooLarge, Unsafe
from ledger.history import agents_of_changes
from orgchart.models import Agent, Organisation
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import current_policy
from toolbox.scheduler import act_on_each

ORG = "company/org.yaml"
CHAIN = "company/chain-of-command.yaml"
DESCRIBING = (Action.AGENT_HIRED, Action.AGENT_DESCRIBED)
"""The acts that file a job description."""
LOOKED_BACK = 100
"""Changes of an organisation whose job descriptions are looked at."""


def job_path(handle: str) -> str:
    """Where an agent's job description is filed (Spec: organisation 34)."""
    return f"company/agents/{handle}.md"


def write_org_files_soon(policy: Policy) -> None:
    """Write the organisation's two files after this transaction commits."""
    for path, text in org_files(policy).items():
        write_file_on_commit(policy.organisation, path, text)


def write_job_file_soon(organisation: str, row: Agent) -> None:
    """Write an agent's job description after this transaction commits."""
    write_file_on_commit(organisation, job_path(row.handle), _job(row))


def refresh_org_files() -> int:
    """Write the files of every organisation that differ from its rows; returns how many."""
    return act_on_each(Organisation.objects.order_by("id"), _refresh)


def _refresh(organisation: Organisation) -> int:
    files = {**org_files(current_policy(organisation.id)), **_job_files(organisation)}
    return sum(
        write_file(organisation.slug, path, text)
        for path, text in files.items()
        if _current(organisation.slug, path) != text
    )


def _job_files(organisation: Organisation) -> Mapping[str, str]:
    """The job descriptions that agents filed lately: a crash or a disk may have left one out."""
    filed = agents_of_changes(organisation.id, DESCRIBING, newest=LOOKED_BACK)
    rows = Agent.objects.filter(organisation=organisation, handle__in=filed)
    return {job_path(row.handle): _job(row) for row in rows}


def _job(row: Agent) -> str:
    return f"# {row.title}\n\n{row.job_description}\n"


_rendered: dict[int, tuple[ref[Policy], Mapping[str, str]]] = {}
"""The files of the last policy of each organisation; a policy never changes.

It is not kept by this: a process keeps as many policies as its cache has room for.
"""


def org_files(policy: Policy) -> Mapping[str, str]:
    """The two files of the organisation, by path."""
    known = _rendered.get(policy.organisation_id)
    if known is None or known[0]() is not policy:
        files = {ORG: _yaml(_org(policy)), CHAIN: _yaml(_chain(policy))}
        known = _rendered[policy.organisation_id] = (ref(policy), files)
    return known[1]


def _current(organisation: str, path: str) -> str:
    try:
        return tree_of(organisation).read(path).decode(errors="replace")
    except (Missing, Unsafe, TooLarge, OSError):
        return ""


def _org(policy: Policy) -> dict[str, Any]:
    return {
        "organisation": policy.organisation,
        "policy_version": policy.version,
        "roles": {
            role.name: {"title": role.title, "level": role.level, "kind": str(role.kind)}
            for role in sorted(policy.roles.values(), key=lambda r: (r.level, r.name))
        },
        "groups": {group.slug: group.name for group in policy.groups.values()},
        "agents": {
            agent.handle: {
                "address": agent.address,
                "role": agent.role,
                "title": agent.title,
                "active": agent.active,
            }
            for agent in sorted(policy.agents.values(), key=lambda a: a.handle)
        },
    }


def _chain(policy: Policy) -> dict[str, Any]:
    active = sorted((a for a in policy.agents.values() if a.active), key=lambda a: a.handle)
    levels: dict[int, list[str]] = {0: [BOARD]}
    for agent in sorted(active, key=policy.level_of):
        levels.setdefault(policy.level_of(agent), []).append(agent.handle)
    return {
        "organisation": policy.organisation,
        "policy_version": policy.version,
        "levels": levels,
        "reports_to": {agent.handle: agent.superior for agent in active},
        "co_managers": {a.handle: list(a.managers[1:]) for a in active if a.managers[1:]},
    }


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True)
