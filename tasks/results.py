"""What the tools of tasks answer, in camelCase names (Spec: tasks 1)."""

from datetime import datetime
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from tasks.vocabulary import Status

JsonObject = dict[str, Any]
NextCursor = Annotated[str | None, Field(description="cursor of the next page; null at the end")]
OwnerHandle = Annotated[str, Field(description="the owner's handle; '' for an unowned task")]


@wire_result
class CommentLine(TypedDict):
    """One comment in a task's discussion."""

    author: str
    body: str
    createdAt: datetime


@wire_result
class TaskWarning(TypedDict):
    """What would have been refused under `enforcement: enforce`."""

    code: str
    message: str
    rule: str


@wire_result
class TaskResult(TypedDict):
    """One task."""

    id: str
    subject: str
    description: str
    activeForm: str | None
    status: Status
    owner: OwnerHandle
    metadata: JsonObject
    blocks: Annotated[list[str], Field(description="tasks that wait for this one")]
    blockedBy: Annotated[list[str], Field(description="tasks that this one waits for")]
    createdAt: datetime
    updatedAt: datetime
    requiredRole: str | None
    version: int
    taskType: str | None
    claimedAt: NotRequired[datetime]
    startedAt: NotRequired[datetime]
    completedAt: NotRequired[datetime]
    leaseDueAt: NotRequired[Annotated[datetime, Field(description="when the claim expires")]]
    approvedBy: NotRequired[str]
    approvedAt: NotRequired[datetime]
    withheld: NotRequired[
        Annotated[list[str], Field(description="fields with text that you may not read")]
    ]
    warnings: NotRequired[
        Annotated[list[TaskWarning], Field(description="under `warn`: what would be refused")]
    ]
    comments: NotRequired[Annotated[list[CommentLine], Field(description="oldest first")]]
    comments_cursor: NotRequired[
        Annotated[str, Field(description="cursor of the comments before these, if there are any")]
    ]


@wire_result
class TaskLine(TypedDict):
    """One task in a list."""

    id: str
    subject: str
    status: Status
    owner: OwnerHandle
    blockedBy: list[str]
    requiredRole: str | None
    version: int
    taskType: str | None


@wire_result
class TaskPage(TypedDict):
    """One page of tasks, newest first."""

    tasks: list[TaskLine]
    next_cursor: NextCursor


@wire_result
class CommentResult(TypedDict):
    """The comment that was added."""

    commentId: str
    taskId: str
    author: str
    body: str
    createdAt: datetime


@wire_result
class RecommendedTask(TypedDict):
    """One task to take next."""

    id: str
    subject: str
    status: Status
    requiredRole: str | None
    taskType: str | None
    version: int
    reasons: Annotated[list[str], Field(description="why this task, the weightiest first")]


@wire_result
class Recommendations(TypedDict):
    """The caller's best next tasks, best first."""

    tasks: list[RecommendedTask]


@wire_result
class BacklogLine(TypedDict):
    """One task of the backlog."""

    id: str
    subject: str
    requiredRole: str | None
    taskType: str | None
    rank: int
    version: int
    blocked: Annotated[bool, Field(description="whether it waits for unfinished tasks")]
    createdAt: datetime


@wire_result
class BacklogPage(TypedDict):
    """One page of the backlog, the highest rank first."""

    tasks: list[BacklogLine]
    next_cursor: NextCursor


BacklogResult = BacklogPage | TaskResult
"""A page for `list`, else the task that was added, edited or removed."""


@wire_result
class RankedTask(TypedDict):
    """One task with its version after the ranking."""

    id: str
    version: int


@wire_result
class RankedTasks(TypedDict):
    """The ranked tasks in their new order."""

    tasks: list[RankedTask]


@wire_result
class FeedbackLine(TypedDict):
    """One report of a product user."""

    id: str
    source: str
    author: str
    category: str
    rating: int | None
    body: str
    receivedAt: datetime
    taskId: Annotated[str | None, Field(description="the task that answers it")]


@wire_result
class FeedbackPage(TypedDict):
    """One page of user feedback, newest first."""

    feedback: list[FeedbackLine]
    next_cursor: NextCursor
