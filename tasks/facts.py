"""What the rules of this room look at: a task's facts, and the change that a call wants; pure."""

from __future__ import annotations

from dataclasses import dataclass

from orgchart.policy.compiled import Agent
from tasks.vocabulary import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A task as the rules see it. `open_blockers` are the ids of unfinished tasks it waits for.

    `workers` did the work: they owned it, started it, or changed its content after it had begun.
    """

    id: str
    status: Status
    version: int
    owner: Agent | None = None
    required_role: str = ""
    task_type: str = ""
    creator: str = ""
    open_blockers: tuple[str, ...] = ()
    needs_approval: bool = False
    approved: bool = False
    workers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a call wants of a task.

    `assigns`: by a manager's own tool, to one of its workers. `curates`: by the tools of whoever
    keeps the backlog, which reach tasks that nobody owns and that have not begun. `reworks`: it
    names subject, description or metadata, which is what an approval is given for. `renews`: it
    names nothing, and so only keeps a claim alive.
    """

    status: Status | None = None
    sets_owner: bool = False
    new_owner: Agent | None = None
    edits: bool = False
    reworks: bool = False
    renews: bool = False
    expected_version: int | None = None
    force: bool = False
    assigns: bool = False
    curates: bool = False
    new_blockers: tuple[str, ...] = ()
