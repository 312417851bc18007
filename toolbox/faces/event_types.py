"""The types of the events of the stream: what each says, and what its `details` hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from core.actions import Action
from core.decision import Code
from core.params import wire_result
from toolbox.frames.vocabulary import FrameState

_FromTo = TypedDict("_FromTo", {"from": str, "to": str})
_From = TypedDict("_From", {"from": str})
_FromNumber = TypedDict("_FromNumber", {"from": int})
_With = TypedDict("_With", {"with": NotRequired[str]})

Change = Annotated[
    list[str], Field(min_length=2, max_length=2, description="the value before and after")
]


@wire_result
class MailDetails(_FromTo):
    """Of a mail."""

    type: str
    contract_ref: NotRequired[str]


@with_config({"extra": "allow"})
class DenialDetails(TypedDict):
    """Of a refusal: its rule and next step, and what else the rule says."""

    rule: str
    next_action: str
    mode: NotRequired[str]
    call_id: NotRequired[str]


@wire_result
class ContractIssuedDetails(TypedDict):
    """Of a new contract."""

    to: str
    contract_kind: str
    mode: str
    workspace_scope: list[str]
    assigned_branch: str
    state: str
    version: int
    changes: NotRequired[Annotated[list[str], Field(description="of an org_change")]]
    request: NotRequired[Annotated[str, Field(description="that a budget answers")]]


@wire_result
class ContractStepDetails(TypedDict):
    """Of a step of a contract."""

    from_state: str
    state: str
    version: int


@wire_result
class ContractHandedOverDetails(ContractStepDetails):
    """Of a contract with another issuer."""

    issuer: str


@wire_result
class ContractSubmittedDetails(ContractStepDetails):
    """Of a submission."""

    report: str
    submission: int
    commit: NotRequired[str]


@wire_result
class ContractReportedDetails(TypedDict):
    """Of a progress report."""

    report: str
    state: str
    version: int


@wire_result
class VerdictDetails(TypedDict):
    """Of QA's verdict."""

    verdict: str
    finding: str
    commit: NotRequired[str]
    run_digest: NotRequired[str]


@wire_result
class PushDetails(_From):
    """Of a push: the commit before it and after."""

    branch: str
    commit: str


@wire_result
class ReviewDetails(TypedDict):
    """Of a review of a branch."""

    branch: str
    commit: str


@wire_result
class MergeDetails(ReviewDetails):
    """Of a merge."""

    main: str
    merge: str
    verdict: str


@wire_result
class TaskChangeDetails(TypedDict):
    """Of a change of a task: what changed, and only that."""

    version: int
    status: NotRequired[Change]
    owner: NotRequired[Change]
    requiredRole: NotRequired[str]
    fields: NotRequired[Annotated[list[str], Field(description="what else changed")]]
    addBlocks: NotRequired[list[str]]
    addBlockedBy: NotRequired[list[str]]
    forceAssign: NotRequired[bool]


@wire_result
class LeaseExpiredDetails(TypedDict):
    """Of a claim that expired: the status that the task keeps."""

    version: int
    status: str
    owner: Change


@wire_result
class TaskJoinedDetails(_With):
    """Of a task that waits: for which task, if you may read it."""

    version: int


@wire_result
class CommentDetails(TypedDict):
    """Of a comment: its number."""

    comment: int


@wire_result
class NoticeDetails(TypedDict):
    """Of a notice: why it comes."""

    why: str


@wire_result
class FrameOpenedDetails(_FromTo):
    """Of a delegation to you; addresses."""

    frame_id: str
    depth: int


@wire_result
class FrameTakenDetails(TypedDict):
    """Of a delegation that its assignee began; an address."""

    frame_id: str
    by: str


@wire_result
class FrameEndedDetails(TypedDict):
    """Of a frame that ended."""

    frame_id: str
    state: FrameState


@wire_result
class FrameStartedDetails(TypedDict):
    """Of a skill that a person started for you."""

    frame_id: str
    skill: str


@wire_result
class CaseTurnDetails(TypedDict):
    """Of a case whose turn is yours."""

    stage: str
    round: int
    state: str


@wire_result
class RunPrintedDetails(_FromNumber):
    """Of a piece of a program's output, and its place."""

    run: str
    output: str


@wire_result
class RunStoppedDetails(TypedDict):
    """Of a program that was stopped."""

    run: str
    tool: str


@wire_result
class EventFrame(TypedDict):
    """What every event of the stream says."""

    kind: str
    action: Action
    actor: str
    tool: str
    subject: str
    code: str
    reason: str
    at: datetime


@wire_result
class DenialFrame(EventFrame):
    """What a refusal says besides."""

    tool_name: str
    error_code: Code
    message: str
    call_id: str
    mode: str
    next_action: str


@wire_result
class PausedEvent(TypedDict):
    """The stream's last event: a person paused you. It has no id; the stream ends."""

    kind: Literal["agent"]
    action: Literal["agent.paused"]
    ok: Literal[False]
    error_code: Literal["AGENT_PAUSED"]
    tool_name: str
    mode: str
    message: str
    next_action: str
    details: dict[str, Any]
