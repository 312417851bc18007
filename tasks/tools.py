"""What agents can do with tasks; wire names are those of seed 001."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from core.paging import DEFAULT_LIMIT, MAX_LIMIT
from core.params import Cursor, Name, Version
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from tasks import discussion, lists, manager_tools, services
from tasks.insight import recommendation as recommending
from tasks.params import (
    ActiveForm,
    Ids,
    Owner,
    StatusName,
    Subject,
    TaskId,
    TaskParams,
    Text,
    TypeName,
    Words,
)
from tasks.planning import Update
from tasks.vocabulary import Status
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

__all__ = ["manager_tools"]


class TaskCreate(TaskParams):
    """A new task (seed 001 §3.1)."""

    subject: Subject
    description: Text = ""
    active_form: ActiveForm | None = Field(None, alias="activeForm")
    metadata: dict[str, Any] | None = None
    required_role: Name | None = Field(
        None, alias="requiredRole", description="role whose agents may take it; none: any"
    )
    task_type: TypeName | None = Field(None, alias="taskType")
    blocked_by: Ids = Field(
        default_factory=list, alias="blockedBy", description="tasks that must end before it starts"
    )


@tool(
    "task_create",
    params=TaskCreate,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
)
def task_create(caller: Caller, params: TaskCreate, now: datetime) -> dict[str, Any]:
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


class TaskGet(TaskParams):
    """One task."""

    task_id: TaskId = Field(alias="taskId")


@tool(
    "task_get",
    params=TaskGet,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
    read_only=True,
)
def task_get(caller: Caller, params: TaskGet, now: datetime) -> dict[str, Any]:
    """Read one task whole, with its version."""
    return services.get_task(caller=caller, task_id=params.task_id)


class TaskList(TaskParams):
    """A page of tasks (seed 001 §4.1)."""

    role_filter: Name | None = Field(
        None,
        alias="roleFilter",
        description="only tasks that require this role, require none, or are owned by it",
    )
    status: StatusName | None = None
    owner: Owner | None = Field(None, description="handle of the owner; '' for unowned tasks")
    cursor: Cursor | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


@tool(
    "task_list",
    params=TaskList,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
    read_only=True,
)
def task_list(caller: Caller, params: TaskList, now: datetime) -> dict[str, Any]:
    """List the organisation's tasks, newest first."""
    return lists.list_tasks(
        caller=caller,
        role_filter=params.role_filter,
        status=Status(params.status) if params.status else None,
        owner=params.owner,
        cursor=params.cursor,
        limit=params.limit,
    )


class TaskUpdate(TaskParams):
    """A change of one task (seed 001 §5.1); what is left out stays."""

    task_id: TaskId = Field(alias="taskId")
    status: StatusName | None = None
    subject: Subject | None = None
    description: Text | None = None
    active_form: ActiveForm | None = Field(None, alias="activeForm")
    owner: Owner | None = Field(None, description="your handle claims it, '' releases it")
    metadata: dict[str, Any] | None = Field(
        None, description="keys to set; null removes a key; the others stay"
    )
    add_blocks: Ids = Field(
        default_factory=list, alias="addBlocks", description="tasks that must wait for this one"
    )
    add_blocked_by: Ids = Field(
        default_factory=list, alias="addBlockedBy", description="tasks this one must wait for"
    )
    expected_version: Version | None = Field(
        None, alias="expectedVersion", description="refused unless the task has this version"
    )
    force_assign: bool | None = Field(
        None, alias="forceAssign", description="task leads only: assign across roles"
    )


@tool(
    "task_update",
    params=TaskUpdate,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
    destructive=True,
)
def task_update(caller: Caller, params: TaskUpdate, now: datetime) -> dict[str, Any]:
    """Claim, release, start, complete, delete or edit a task; name expectedVersion to be safe."""
    update = Update(
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


class TaskComment(TaskParams):
    """A contribution to a task's discussion (seed 001 §10.2)."""

    task_id: TaskId = Field(alias="taskId")
    body: Words


@tool(
    "task_comment",
    params=TaskComment,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
)
def task_comment(caller: Caller, params: TaskComment, now: datetime) -> dict[str, Any]:
    """Say something about a task; task_get shows what was said."""
    return discussion.comment_task(caller=caller, task_id=params.task_id, body=params.body, now=now)


class TaskApprove(TaskParams):
    """A task lead's judgement of the work (seed 001 §10.2)."""

    task_id: TaskId = Field(alias="taskId")
    approve: bool = Field(True, description="false takes an approval back")
    comment: Words | None = None
    expected_version: Version | None = Field(None, alias="expectedVersion")


@tool(
    "task_approve",
    params=TaskApprove,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
    destructive=True,
)
def task_approve(caller: Caller, params: TaskApprove, now: datetime) -> dict[str, Any]:
    """Approve a task's work, as a task lead who did not do it, so that it may be completed."""
    return discussion.approve_task(
        caller=caller,
        task_id=params.task_id,
        approve=params.approve,
        comment=params.comment or "",
        expected_version=params.expected_version,
        now=now,
    )


class TaskRecommend(TaskParams):
    """How many recommendations."""

    limit: int = Field(5, ge=1, le=20)


@tool(
    "task_recommend",
    params=TaskRecommend,
    source=Source.BUILTIN,
    group=ToolGroup.TASK,
    modes=ANY_MODE,
    read_only=True,
)
def task_recommend(caller: Caller, params: TaskRecommend, now: datetime) -> dict[str, Any]:
    """Your best next tasks, with the reasons; claim one with task_update."""
    return recommending.recommend_tasks(caller=caller, limit=params.limit, now=now)
