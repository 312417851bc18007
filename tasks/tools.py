"""What agents can do with tasks (Spec: tasks 1)."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from core.params import Cursor, Name, Page, Version
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from tasks import discussion, listing, manager_tools, services
from tasks.insight.recommendations import recommend_tasks
from tasks.param_types import (
    ActiveForm,
    CommentBody,
    Ids,
    Owner,
    StatusName,
    Subject,
    TaskId,
    TaskParams,
    Text,
    TypeName,
)
from tasks.results import CommentResult, JsonObject, Recommendations, TaskPage, TaskResult
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool
from toolbox.rules import Holder

__all__ = ["manager_tools"]


class CreateParams(TaskParams):
    """A new task (Spec: tasks 4)."""

    subject: Subject
    description: Text = ""
    active_form: ActiveForm | None = Field(None, alias="activeForm")
    metadata: JsonObject | None = None
    required_role: Name | None = Field(
        None, alias="requiredRole", description="role that may take it"
    )
    task_type: TypeName | None = Field(None, alias="taskType")
    blocked_by: Ids = Field(
        default_factory=list, alias="blockedBy", description="tasks it waits for"
    )


@tool("task_create", source=Source.BUILTIN, group=ToolGroup.TASK, modes=ANY_MODE)
def task_create(caller: Caller, params: CreateParams, now: datetime) -> TaskResult:
    """Add a task to the organisation's shared list."""
    return services.create_task(
        caller=caller,
        subject=params.subject,
        description=params.description,
        active_form=params.active_form or "",
        metadata=params.metadata,
        required_role=params.required_role,
        task_type=params.task_type,
        blocked_by=params.blocked_by,
        now=now,
    )


class GetParams(TaskParams):
    """One task."""

    task_id: TaskId = Field(alias="taskId")
    comments_cursor: Cursor | None = Field(
        None, description="comments_cursor of the answer before: the comments before those"
    )


@tool("task_get", source=Source.BUILTIN, group=ToolGroup.TASK, modes=ANY_MODE, read_only=True)
def task_get(caller: Caller, params: GetParams, now: datetime) -> TaskResult:
    """Read one task whole, with its version."""
    return services.get_task(
        caller=caller, task_id=params.task_id, comments_cursor=params.comments_cursor
    )


class ListParams(Page, TaskParams):
    """A page of tasks (Spec: tasks 9)."""

    role_filter: Name | None = Field(
        None,
        alias="roleFilter",
        description="tasks that this role may take or owns",
    )
    status: StatusName | None = None
    owner: Owner | None = Field(None, description="'' for unowned tasks")


@tool("task_list", source=Source.BUILTIN, group=ToolGroup.TASK, modes=ANY_MODE, read_only=True)
def task_list(caller: Caller, params: ListParams, now: datetime) -> TaskPage:
    """List the organisation's tasks, newest first."""
    return listing.list_tasks(
        caller=caller,
        role_filter=params.role_filter,
        status=Status(params.status) if params.status else None,
        owner=params.owner,
        cursor=params.cursor,
        limit=params.limit,
    )


class UpdateParams(TaskParams):
    """A change of one task (Spec: tasks 12); what is left out stays."""

    task_id: TaskId = Field(alias="taskId")
    status: StatusName | None = None
    subject: Subject | None = None
    description: Text | None = None
    active_form: ActiveForm | None = Field(None, alias="activeForm")
    owner: Owner | None = Field(None, description="your handle claims it, '' releases it")
    metadata: JsonObject | None = Field(None, description="keys to set; null removes one")
    add_blocks: Ids = Field(
        default_factory=list, alias="addBlocks", description="tasks that wait for it"
    )
    add_blocked_by: Ids = Field(
        default_factory=list, alias="addBlockedBy", description="tasks it waits for"
    )
    expected_version: Version | None = Field(
        None, alias="expectedVersion", description="the version you saw"
    )
    force_assign: bool | None = Field(
        None, alias="forceAssign", description="leads only: across roles"
    )


@tool("task_update", source=Source.BUILTIN, group=ToolGroup.TASK, modes=ANY_MODE, destructive=True)
def task_update(caller: Caller, params: UpdateParams, now: datetime) -> TaskResult:
    """Claim, release, start, complete, delete or edit a task; name expectedVersion to be safe."""
    update = TaskUpdate(
        status=Status(params.status) if params.status else None,
        subject=params.subject,
        description=params.description,
        active_form=params.active_form,
        owner=params.owner,
        metadata=params.metadata,
        add_blocks=tuple(params.add_blocks),
        add_blocked_by=tuple(params.add_blocked_by),
        expected_version=params.expected_version,
        force=bool(params.force_assign),
    )
    return services.update_task(caller=caller, task_id=params.task_id, update=update, now=now)


class CommentParams(TaskParams):
    """A comment on a task (Spec: tasks 46)."""

    task_id: TaskId = Field(alias="taskId")
    body: CommentBody


@tool("task_comment", source=Source.BUILTIN, group=ToolGroup.TASK, modes=ANY_MODE)
def task_comment(caller: Caller, params: CommentParams, now: datetime) -> CommentResult:
    """Comment on a task; task_get shows the comments."""
    return discussion.comment_task(caller=caller, task_id=params.task_id, body=params.body, now=now)


class ApproveParams(TaskParams):
    """A task lead's approval of the work (Spec: tasks 44)."""

    task_id: TaskId = Field(alias="taskId")
    approve: bool = Field(True, description="false withdraws an approval")
    comment: CommentBody | None = None
    expected_version: Version | None = Field(None, alias="expectedVersion")


def _nothing_asks(holder: Holder) -> str:
    asks = holder.policy.settings.get("approval_task_types")
    return "" if asks else "no type of task needs approval here"


@tool(
    "task_approve",
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
    destructive=True,
    unusable=_nothing_asks,
)
def task_approve(caller: Caller, params: ApproveParams, now: datetime) -> TaskResult:
    """Approve a task's work, as a task lead who did not do it, so that it may be completed."""
    return discussion.approve_task(
        caller=caller,
        task_id=params.task_id,
        approve=params.approve,
        comment=params.comment or "",
        expected_version=params.expected_version,
        now=now,
    )


class RecommendParams(TaskParams):
    """How many recommendations."""

    limit: int = Field(5, ge=1, le=20)


@tool("task_recommend", source=Source.BUILTIN, group=ToolGroup.TASK, modes=ANY_MODE, read_only=True)
def task_recommend(caller: Caller, params: RecommendParams, now: datetime) -> Recommendations:
    """Your best next tasks, with the reasons; claim one with task_update."""
    return recommend_tasks(caller=caller, limit=params.limit, now=now)
