"""Closed sets of the tasks room: states and their transitions, types (Spec: tasks 23, tasks 3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum

from core.machines import Machine, Step


class Status(StrEnum):
    """Where a task is (Spec: tasks 23)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    DELETED = "deleted"


LEADS = "task lead only"

MACHINE = Machine(
    name="task",
    states=Status,
    initial=Status.PENDING,
    steps={
        "start": Step((Status.PENDING,), Status.IN_PROGRESS),
        "complete": Step((Status.IN_PROGRESS,), Status.COMPLETED),
        "remove": Step((Status.PENDING, Status.IN_PROGRESS), Status.DELETED),
        "remove_completed": Step((Status.COMPLETED,), Status.DELETED, by=LEADS),
    },
)
"""The one table of a task's states (Spec: tasks 23)."""

TRANSITIONS: Mapping[Status, tuple[Status, ...]] = {
    before: tuple(Status(MACHINE.steps[name].target) for name in MACHINE.steps_from(before))
    for before in Status
}
"""The states that may follow each state."""

LEAD_ONLY = frozenset(
    (source, step.target)
    for step in MACHINE.steps.values()
    if step.by == LEADS
    for source in step.sources
)
"""Transitions that only a task lead may make."""

UNFINISHED = frozenset({Status.PENDING, Status.IN_PROGRESS})
"""A task in one of these states blocks the tasks that depend on it."""

UNFINISHED_SQL = ", ".join(f"'{status}'" for status in sorted(UNFINISHED))
"""The same as SQL, for statements whose plan needs constants."""

ENDED = frozenset({Status.COMPLETED, Status.DELETED})
"""A task in one of these states no longer blocks the tasks that depend on it."""

LISTED = (Status.PENDING, Status.IN_PROGRESS, Status.COMPLETED)
"""The states that a list shows by default."""

MAX_TASK_SUBJECT, MAX_TASK_TEXT, MAX_COMMENT = 500, 100_000, 10_000  # characters


class TaskType(StrEnum):
    """What kind of work a task is (Spec: tasks 3)."""

    REQUIREMENT_ANALYSIS = "requirement_analysis"
    TECH_RESEARCH = "tech_research"
    ARCHITECTURE_DESIGN = "architecture_design"
    API_DESIGN = "api_design"
    UI_DESIGN = "ui_design"
    BACKEND_IMPLEMENTATION = "backend_implementation"
    FRONTEND_IMPLEMENTATION = "frontend_implementation"
    CLIENT_IMPLEMENTATION = "client_implementation"
    TESTING = "testing"
    DEPLOYMENT = "deployment"
    DOCUMENTATION = "documentation"
    CODE_REVIEW = "code_review"
    BUG_FIX = "bug_fix"
    OPTIMIZATION = "optimization"
    OTHER = "other"


class ListIndex(IntEnum):
    """The N by which the index of a list orders its tasks, `number * -N`: each a different one.

    A query that asks for the order gets that index, whatever the statistics make others look like.
    """

    WRITER = 1
    ROLE = 2
    OWNER = 3
    ACROSS = 4
    UNOWNED = 5
    UNOWNED_ROLE = 6


class Enforcement(StrEnum):
    """What happens when a role does not match or a version is stale (Spec: tasks 36)."""

    ENFORCE = "enforce"
    WARN = "warn"
    OFF = "off"
