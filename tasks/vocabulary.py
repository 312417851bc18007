"""Closed sets of the tasks room: states and their transitions, types (seed 001)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """Where a task is (seed 001 §2.2)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    DELETED = "deleted"


TRANSITIONS: Mapping[Status, tuple[Status, ...]] = {
    Status.PENDING: (Status.IN_PROGRESS, Status.DELETED),
    Status.IN_PROGRESS: (Status.COMPLETED, Status.DELETED),
    Status.COMPLETED: (Status.DELETED,),
    Status.DELETED: (),
}
"""The one table of what may follow what (seed 001, appendix C)."""

LEAD_ONLY = frozenset({(Status.COMPLETED, Status.DELETED)})
"""Transitions of a task lead alone."""

UNFINISHED = frozenset({Status.PENDING, Status.IN_PROGRESS})
"""A task in one of these blocks those that wait for it."""

LISTED = (Status.PENDING, Status.IN_PROGRESS, Status.COMPLETED)
"""What a list shows unless it is asked for deleted ones."""


class TaskType(StrEnum):
    """What kind of work a task is (seed 001, appendix B)."""

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


class Enforcement(StrEnum):
    """What happens to a broken role match or version (seed 001 §8.2)."""

    ENFORCE = "enforce"
    WARN = "warn"
    OFF = "off"
