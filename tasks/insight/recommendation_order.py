"""The order of recommended tasks, and the reasons as sentences; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An unowned task without open blockers that the agent may take."""

    number: int
    required_role: str
    task_type: str
    rank: int
    dependents: int
    started: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Taker:
    """The agent: its names as a required role, the types its role claims, its completions."""

    handle: str
    role: str
    claims: frozenset[str] | None = None
    experience: Mapping[str, int] = field(default_factory=dict)


def fit(task: Candidate, taker: Taker) -> int:
    """How well a task fits the agent: 2 for its required role, 1 for a claimed type."""
    meant = 2 if task.required_role in (taker.handle, taker.role) else 0
    return meant + (1 if task.task_type and task.task_type in (taker.claims or ()) else 0)


def order(task: Candidate, taker: Taker) -> tuple[int, int, int, int, int]:
    """The sort key: rank, fit, experience with the type, what it sets free, age.

    Between tasks of one role and type only rank, what waits and age differ, in the order of the
    index: the best of each such group are enough to know the best of all.
    """
    known = taker.experience.get(task.task_type, 0) if task.task_type else 0
    return (-task.rank, -fit(task, taker), -known, -task.dependents, task.number)


def best(tasks: Sequence[Candidate], taker: Taker, limit: int) -> list[Candidate]:
    """The first of the order; the same tasks always give the same answer."""
    return sorted(tasks, key=lambda task: order(task, taker))[:limit]


def reasons(task: Candidate, taker: Taker, now: datetime) -> list[str]:
    """Why this task, one sentence each, in the order in which they count."""
    found = []
    if task.rank > 0:
        found.append(f"It is ranked {task.rank} in the backlog; higher comes first.")
    if task.required_role:
        found.append(f'It requires your role "{task.required_role}".')
    elif task.task_type and task.task_type in (taker.claims or ()):
        found.append(f'Your role takes tasks of type "{task.task_type}".')
    else:
        found.append("It requires no role, so you may take it.")
    known = taker.experience.get(task.task_type, 0) if task.task_type else 0
    if known:
        found.append(f'You have completed {known} of type "{task.task_type}".')
    if task.dependents:
        noun = "task waits" if task.dependents == 1 else "tasks wait"
        found.append(f"{task.dependents} {noun} for it.")
    if task.started:
        found.append("It was started and then released: it has to be finished.")
    found.append(f"It has been open for {_age(now, task.created_at)}.")
    return found


def _age(now: datetime, created_at: datetime) -> str:
    minutes = max(0, int((now - created_at).total_seconds() // 60))
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
