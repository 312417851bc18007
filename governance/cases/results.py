"""What the case tools answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result


@wire_result
class CaseMoved(TypedDict):
    """Where a case is."""

    case_id: str
    stage: str
    round: int
    state: str


@wire_result
class ArtifactKept(TypedDict):
    """What was kept of a submission."""

    id: str
    sha256: Annotated[str, Field(description="digest of stage, outcome, content and evidence")]


@wire_result
class CaseSubmitted(CaseMoved):
    """Where a case is after a submission, and what was kept of it."""

    artifact: ArtifactKept


@wire_result
class AnalysisSeen(TypedDict):
    """An ANALYSIS as it was submitted."""

    what: str
    why: str
    constraints: str | list[str]


@wire_result
class TaskSeen(TypedDict):
    """One task as it was planned."""

    id: str
    task: str
    verify_by: str


@wire_result
class TasksSeen(TypedDict):
    """TASKS as they were submitted."""

    tasks: list[TaskSeen]


@wire_result
class ArtifactSeen(TypedDict):
    """One file of an IMPLEMENTATION."""

    path: str
    sha256: str
    body: str


@wire_result
class ImplementationSeen(TypedDict):
    """An IMPLEMENTATION as it was submitted."""

    artifacts: list[ArtifactSeen]


@wire_result
class TaskToVerify(TypedDict):
    """What a Tester sees of a task."""

    id: str
    verify_by: str


@wire_result
class OutcomeSeen(TypedDict):
    """What the CONDUCTOR sees of a REVIEW or TEST."""

    outcome: str
    round: int
    overruled: Annotated[bool, Field(description="True if HUMAN_ADMIN overruled it")]


@wire_result
class Protocol(TypedDict):
    """The state of the protocol, without content."""

    state: str
    stage: str
    round: int
    max_rounds: int
    failed_by: Annotated[str | None, Field(description="signal that led to this verdict")]
    paused_by: Annotated[str | None, Field(description="mandatory stop that waits for a person")]
    decisions: Annotated[list[str], Field(description="what case_decide accepts now")]


@wire_result
class Inputs(TypedDict, total=False):
    """The legal inputs of the caller's office; nothing else is there."""

    REQUEST: str
    ANALYSIS: AnalysisSeen
    TASKS: TasksSeen
    IMPLEMENTATION: ImplementationSeen
    VERIFY_BY: list[TaskToVerify]
    ARTIFACTS: list[ArtifactSeen]
    REVIEW: OutcomeSeen
    TEST: OutcomeSeen
    PROTOCOL: Protocol


@wire_result
class CaseInputs(CaseMoved):
    """A case with the caller's legal inputs, as far as they exist."""

    inputs: Inputs


@wire_result
class CaseListed(CaseMoved):
    """One case of a list, without content."""

    your_turn: Annotated[bool, Field(description="True if the case waits for your office")]
    opened_at: datetime
    moved_at: datetime


@wire_result
class CaseList(TypedDict):
    """A page of cases, newest first."""

    cases: list[CaseListed]
    next_cursor: str | None
