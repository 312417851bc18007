"""Whose text an agent may read: the one decision on tasks, comments and neighbours; pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from core.decision import Allow, Code, Decision, deny, listed
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import BOARD_PARTY, Board, Party
from orgchart.policy.readership import is_open, may_contact, readable_writers, rule_of_reading
from orgchart.policy.vocabulary import Visibility
from tasks.rules.values import TaskRow

PEOPLE = 0
"""The writer of text that people wrote, or the system: every agent may read it."""


@dataclass(frozen=True, slots=True, eq=False)
class Readership:
    """Whose text one party may read under a policy; the Board, or without one: everybody's."""

    policy: Policy | None = None
    reader: Party = BOARD_PARTY

    def covers(self, writer: int | None) -> bool:
        """Whether the reader may read this writer's text."""
        if not writer or self.policy is None or isinstance(self.reader, Board):
            return True
        agent = self.policy.by_id.get(writer)
        return agent is not None and bool(rule_of_reading(self.policy, agent, self.reader))

    def covers_task(self, row: TaskRow) -> bool:
        """Whether the reader may read this task: the subject is what a task is known by."""
        return self.covers(row.subject_writer)

    def readable(self, row: TaskRow, numbers: Collection[int]) -> list[int]:
        """The numbers of those of a task's neighbours that the reader may read."""
        return [number for number in numbers if self.covers(row.neighbour_writers.get(number))]

    @property
    def ids(self) -> list[int] | None:
        """The writers as a parameter of a query; None: no filter."""
        if self.policy is None or isinstance(self.reader, Board):
            return None
        return sorted({PEOPLE, *readable_writers(self.policy, self.reader)})


EVERYTHING = Readership()
"""What the Board reads."""


def readership_of(policy: Policy, reader: Party) -> Readership:
    """The writers whose text a party may read; the Board: every writer's."""
    if isinstance(reader, Board) or policy.settings["task_visibility"] == Visibility.ALL:
        return EVERYTHING
    return Readership(policy, reader)


def can_require_role(policy: Policy, writer: Party, role: str) -> Decision:
    """Decide whether a task may require a role: one its writer may contact, or its own.

    (Spec: tasks 35)
    """
    if isinstance(writer, Board) or role in ("", writer.role):
        return Allow("own role, or none")
    if Visibility(policy.settings["task_visibility"]) is Visibility.ALL:
        return Allow("task_visibility: all")
    if role in policy.roles and _is_reachable(policy, writer, role):
        return Allow(f"contact {writer.role} -> {role}")
    others = listed(roles_to_require(policy, writer))
    return deny(
        Code.CONTACT_DENIED,
        f"{writer.handle} may not contact an agent of the role {role}, so it has no work for one",
        f"require one of: {others}; or leave requiredRole out",
        rule="a task is for roles that its writer may contact (spec: tasks 35)",
    )


def can_ask_for(policy: Policy, writer_id: int, role: str) -> Decision:
    """Decide whether a task whose subject somebody else wrote may require a role.

    The holders must be able to read it, or no agent could claim it (Spec: tasks 35).
    """
    found = can_require_role(policy, policy.by_id.get(writer_id) or BOARD_PARTY, role)
    if isinstance(found, Allow):
        return found
    return replace(
        found, next_action="write the subject, and what else is to be done, in your own words"
    )


def roles_to_require(policy: Policy, writer: Party) -> list[str]:
    """The roles that a writer's task may require, sorted; the Board's: every role.

    A refusal names these alone: the name of any other role is another agent's text (Spec: mail 38).
    """
    if isinstance(writer, Board) or policy.settings["task_visibility"] == Visibility.ALL:
        return sorted(policy.roles)
    return sorted(
        name for name in policy.roles if name == writer.role or _is_reachable(policy, writer, name)
    )


def _is_reachable(policy: Policy, writer: Agent, role: str) -> bool:
    """Whether the writer may contact a holder, or could contact one where there is none yet."""
    holders = policy.holders.get(role)
    if holders:
        return any(may_contact(policy, writer, policy.agents[handle]) for handle in holders)
    return is_open(policy, policy.contacts.get((writer.role, role)))
