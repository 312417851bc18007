"""Who acts on tasks and what its role permits: read from the policy, not from a request; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import BOARD_PARTY, Board, Party
from orgchart.policy.vocabulary import BOARD, Permission
from tasks.rules.visibility import PEOPLE, Readership, readership_of
from tasks.vocabulary import Enforcement


@dataclass(frozen=True, slots=True)
class Permissions:
    """A role's permissions on tasks. `claims` None: every type."""

    claims: frozenset[str] | None = None
    update_own: bool = True
    comment_all: bool = True


UNRESTRICTED = Permissions()


def read_permissions(given: Any) -> Permissions:
    """Read a role's permissions, a mapping or a list (Spec: tasks 40).

    None given: no restriction. A role that lists any has only those that it lists.
    """
    if not given:
        return UNRESTRICTED
    entries = dict(given) if isinstance(given, Mapping) else _as_mapping(given)
    claims = entries.get(Permission.CLAIM_TASK_TYPE, ())
    types = None if claims in (True, "*") else frozenset(map(str, claims or ()))
    return Permissions(
        claims=types,
        update_own=entries.get(Permission.UPDATE_OWN_TASKS) is True,
        comment_all=entries.get(Permission.COMMENT_ON_ALL_TASKS) is True,
    )


def _as_mapping(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in given if isinstance(given, Iterable) and not isinstance(given, str) else ():
        found |= dict(entry) if isinstance(entry, Mapping) else {str(entry): True}
    return found


@dataclass(frozen=True)
class TaskActor:
    """An agent under its policy, or a person as the Board, who has every right."""

    policy: Policy
    party: Party = BOARD_PARTY

    @property
    def known_names(self) -> Collection[str]:
        """The agents that a refusal may name: its contacts; every one for a person."""
        party = self.party
        return self.policy.agents if isinstance(party, Board) else self.policy.contacts_of(party)

    @property
    def handle(self) -> str:
        """The agent's handle; `board` for a person."""
        return self.party.handle

    @property
    def role(self) -> str:
        """The role's name; `board` for a person."""
        return BOARD if isinstance(self.party, Board) else self.party.role

    @property
    def writer(self) -> int:
        """The id under which its text is kept; PEOPLE for a person."""
        return PEOPLE if self.party.id is None else self.party.id

    @cached_property
    def readership(self) -> Readership:
        """Whose text the actor may read."""
        return readership_of(self.policy, self.party)

    @property
    def is_lead(self) -> bool:
        """Whether the pack gives the role `task_lead`."""
        party = self.party
        return isinstance(party, Board) or self.policy.roles[party.role].task_lead

    @property
    def permissions(self) -> Permissions:
        """The permissions of the actor's role."""
        if isinstance(self.party, Board):
            return UNRESTRICTED
        return read_permissions(self.policy.roles[self.party.role].permissions)

    def is_agent(self, agent_id: int | None) -> bool:
        """Whether the actor is the agent with this id."""
        return agent_id is not None and self.party.id == agent_id

    def leads(self, other: Agent) -> bool:
        """Whether the actor is a task lead over an agent.

        A lead whose superior is the Board leads every agent; any other lead leads itself and its
        own workers (Spec: tasks 22).
        """
        if not self.is_lead:
            return False
        if self._leads_all:
            return True
        return self.handle in (other.handle, *other.managers)

    def leads_id(self, agent_id: int) -> bool:
        """Whether the actor is a task lead over the agent with this id."""
        other = self.policy.by_id.get(agent_id)
        return isinstance(self.party, Board) or (other is not None and self.leads(other))

    def may_force_for(self, other: Agent) -> bool:
        """Whether the actor may give an agent a task that requires another role.

        A lead whose superior is the Board may for every agent; any other lead for its own workers,
        not for itself (Spec: tasks 22).
        """
        return self.leads(other) and (self._leads_all or not self.is_agent(other.id))

    @property
    def _leads_all(self) -> bool:
        return isinstance(self.party, Board) or self.party.superior == BOARD

    def leads_open(self, required_role: str) -> bool:
        """Whether the lead leads an unowned task of this role.

        It is one that its people could do, or that no active agent could take (Spec: tasks 22).
        """
        if not self.is_lead:
            return False
        if isinstance(self.party, Board) or self._leads_all or not required_role:
            return True
        people = (self.party, *self.policy.workers_of(self.party))
        if any(is_for(required_role, one) for one in people):
            return True
        active = (one for one in self.policy.agents.values() if one.active)
        return not any(is_for(required_role, one) for one in active)


def enforcement_of(policy: Policy) -> Enforcement:
    """The organisation's switch for role match and version (Spec: tasks 36)."""
    return Enforcement(policy.settings["enforcement"])


def lead_roles(policy: Policy) -> tuple[str, ...]:
    """The roles that the pack marks `task_lead`, sorted."""
    return tuple(sorted(name for name, role in policy.roles.items() if role.task_lead))


def lead_name(policy: Policy) -> str:
    """The lead roles as the error sentences name them; `team-lead` where there is none."""
    return " or ".join(lead_roles(policy)) or "team-lead"


def is_for(role: str, agent: Agent) -> bool:
    """Whether a required role names this agent: its handle or its role (Spec: tasks 19)."""
    return role in (agent.handle, agent.role)


def roles_claiming(policy: Policy, task_type: str) -> tuple[str, ...]:
    """The roles that list a task type among those they claim (Spec: tasks 42), sorted."""
    return tuple(
        sorted(
            name
            for name, role in policy.roles.items()
            if task_type in (read_permissions(role.permissions).claims or ())
        )
    )
