"""Changes of the organisation: the contract that authorises one, the policy it is decided on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError

from contracts.approvals import authorisations
from contracts.issuing.changes import SoughtLine
from contracts.vocabulary import OrgAct
from core.actions import Action
from core.actors import Actor
from core.database import violated_constraint
from core.decision import Code, Denied, listed, refuse, require_version
from governance.staff import rules
from governance.staff.org_files import write_org_files_soon
from orgchart.models import Agent as AgentRow
from orgchart.models import Organisation
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.names import unknown_agent
from orgchart.services import PolicyChange, change_policy
from toolbox.caller import Caller

BROKEN = {
    "agent_handle_once": "another agent has that handle",
    "agent_name_once": "another agent has that name in the group; exchange two in two steps",
    "group_leader_once": "the group has a leader already",
    "agent_not_own_superior": "an agent cannot report to itself",
}
"""What a change can violate, by the name of the database's constraint."""


def use_change(caller: Caller, act: OrgAct, name: str, now: datetime) -> str:
    """Use up the line of an org_change contract that names this change of this agent; its id.

    Raises Denied NOT_FOUND, AUTHORISATION_REQUIRED (Spec: organisation 32).
    """
    sought = SoughtLine(act, find_agent(caller, name).handle)
    return authorisations.use_change(caller=caller, sought=sought, now=now)


def require_policy(policy: Policy, expected: int | None) -> int:
    """The version of the policy that a change is decided on.

    Raises Denied VERSION_MISMATCH when another one was expected.
    """
    require_version(
        "the organisation",
        "read the organisation again and repeat with its current policy_version",
        expected=expected,
        current=policy.version,
    )
    return policy.version


def find_agent(caller: Caller, name: str) -> Agent:
    """An agent of the organisation, active or not. Raises Denied NOT_FOUND."""
    found = caller.policy.resolve(name)
    if found is None:
        step = "list_agents shows the agents of the organisation"
        raise Denied(unknown_agent(name, step, known=caller.policy.contacts_of(caller.agent)))
    return found


def find_active(caller: Caller, name: str, field: str) -> Agent:
    """An active agent of the organisation. Raises Denied NOT_FOUND, INVALID_PARAMS."""
    found = find_agent(caller, name)
    if not found.active:
        raise refuse(
            Code.INVALID_PARAMS,
            f"{field}: {found.handle} is deactivated",
            "name an active agent",
            rule="the agent is active",
            **{field: "is deactivated"},
        )
    return found


def find_co_managers(caller: Caller, names: Sequence[str]) -> list[Agent]:
    """The active agents of these names. Raises Denied NOT_FOUND, INVALID_PARAMS, and LEVEL_DENIED
    for the caller itself.
    """
    found = [find_active(caller, name, "co_managers") for name in names]
    caller.require(rules.can_make_co_managers(caller.agent, [agent.handle for agent in found]))
    return found


def find_role(caller: Caller, name: str) -> Role:
    """A role of the organisation. Raises Denied INVALID_PARAMS."""
    found = caller.policy.roles.get(name)
    if found is None:
        raise refuse(
            Code.INVALID_PARAMS,
            f"role: there is no role {name[:64]!r}",
            f"name one of: {listed(sorted(caller.policy.roles))}; a new kind of worker has the "
            "handle of its first holder as its role",
            rule="the role exists",
            role="there is no such role",
        )
    return found


def change_organisation(
    caller: Actor,
    apply: Callable[[Organisation], None],
    *,
    action: Action,
    version: int,
    now: datetime,
    subject: str = "",
    reason: str = "",
    **details: Any,
) -> PolicyChange:
    """Change the policy that was decided on; its files are written after the commit.

    Raises Denied VERSION_MISMATCH, or INVALID_PARAMS for a broken invariant or a taken name.
    """
    try:
        change = change_policy(
            organisation_id=caller.organisation_id,
            apply=apply,
            caller=caller,
            action=action,
            now=now,
            reason=reason,
            subject=subject,
            expected_version=version,
            details=details,
        )
    except IntegrityError as problem:
        broken = BROKEN.get(violated_constraint(problem))
        if broken is None:
            raise
        raise refuse(
            Code.INVALID_PARAMS,
            broken,
            "change what you give: another agent has it",
            rule="one name, one agent",
        ) from problem
    write_org_files_soon(change.after)
    return change


def row_of(agent: Agent) -> AgentRow:
    """The row of an agent."""
    return AgentRow.objects.get(id=agent.id)
