"""What the rules read: a stored task, and the update that a call asks for; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orgchart.policy.compiled import Agent, Policy
from tasks.vocabulary import Status


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A stored task with its owner's handle and the numbers of its neighbours.

    `workers` did the work: they owned it, started it, or changed its content after its start.
    `waits_for` are the unfinished tasks among `blocked_by`. Each text knows the agent that wrote it
    last, 0 for people: `subject_writer`, and `text_writers` by column and by key of the metadata;
    `neighbour_writers` are the subjects' writers of the neighbours, by number. `is_assigned`: the
    owner did not claim the task itself, or by force.
    """

    id: int
    number: int
    subject: str
    description: str
    active_form: str
    status: Status
    owner_id: int | None
    metadata: dict[str, Any]
    required_role: str
    task_type: str
    version: int
    rank: int
    open_blockers: int
    dependents: int
    cross_role: bool
    owner_role: str
    workers: list[int]
    completed_by_id: int | None
    approved_by: str
    approved_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    lease_due_at: datetime | None
    created_by: str
    creator_id: int | None
    created_at: datetime
    updated_at: datetime
    subject_writer: int
    text_writers: dict[str, Any]
    is_assigned: bool
    owner: str | None
    blocks: list[int]
    blocked_by: list[int]
    waits_for: list[int]
    neighbour_writers: dict[int, int]

    def owner_in(self, policy: Policy) -> Agent | None:
        """The owner as the policy knows it; an agent hired after the policy was read is plain."""
        if self.owner_id is None:
            return None
        known = policy.by_id.get(self.owner_id)
        return known or Agent(self.owner_id, self.owner or "", self.owner_role, "")

    def worker_in(self, policy: Policy) -> Agent | None:
        """The owner or, of a task without one, the agent for which it was completed."""
        return self.owner_in(policy) or policy.by_id.get(self.completed_by_id or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdate:
    """What a call asks for; None: not asked. `owner` '' releases the task (Spec: tasks 12).

    `assigns`: a manager assigns one of its workers. `curates`: the backlog's tools, which reach
    unowned tasks that have not begun. `new_blockers` are the unfinished ones among
    `add_blocked_by`, `unseen` the named ids that the task's owner cannot read; the
    service adds both.
    """

    status: Status | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    metadata: Mapping[str, Any] | None = None
    add_blocks: tuple[str, ...] = ()
    add_blocked_by: tuple[str, ...] = ()
    rank: int | None = None
    required_role: str | None = None
    task_type: str | None = None
    expected_version: int | None = None
    force: bool = False
    assigns: bool = False
    curates: bool = False
    new_blockers: tuple[int, ...] = ()
    unseen: frozenset[str] = frozenset()

    @property
    def content(self) -> dict[str, Any]:
        """The columns of content that it sets; metadata is merged and not among them."""
        columns = {
            "subject": self.subject,
            "description": self.description,
            "active_form": self.active_form,
            "rank": self.rank,
            "required_role": self.required_role,
            "task_type": self.task_type,
        }
        return {name: value for name, value in columns.items() if value is not None}

    def releases_nothing(self, task: TaskRow) -> bool:
        """Whether all that it asks is to release a task without owner (Spec: tasks 16)."""
        if self.owner != "" or task.owner_id is not None:
            return False  # as most updates: asked first, because to build one to compare costs more
        return replace(self, force=False) == TaskUpdate(
            owner="", expected_version=self.expected_version
        )

    @property
    def changes_dependencies(self) -> bool:
        """Whether it adds dependencies."""
        return bool(self.add_blocks or self.add_blocked_by)

    @property
    def changes_audience(self) -> bool:
        """Whether it changes which role the task requires, or what its text asks for."""
        return (self.subject, self.required_role, self.task_type) != (None, None, None)

    @property
    def reworks(self) -> bool:
        """Whether it changes what an approval covers: a text or the metadata."""
        texts = (self.subject, self.description, self.active_form)
        return (*texts, self.metadata) != (None, None, None, None)

    @property
    def edits(self) -> bool:
        """Whether it changes more than owner and status."""
        named = self.content or self.add_blocks or self.add_blocked_by
        return bool(named or self.metadata is not None)

    @property
    def renews(self) -> bool:
        """Whether it asks for nothing, and so only renews the owner's claim."""
        return self.status is None and self.owner is None and not self.edits
