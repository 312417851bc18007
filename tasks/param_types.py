"""Types of the tools' parameters, and their base: camelCase names and no other (Spec: tasks 1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from core.params import Name, Params
from tasks.vocabulary import MAX_COMMENT, MAX_TASK_SUBJECT, MAX_TASK_TEXT, TaskType

TaskId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Owner = Annotated[str, StringConstraints(max_length=64)]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TASK_SUBJECT)]
ActiveForm = Annotated[str, StringConstraints(max_length=MAX_TASK_SUBJECT)]
Text = Annotated[str, StringConstraints(max_length=MAX_TASK_TEXT)]
StatusName = Literal["pending", "in_progress", "completed", "deleted"]
TypeName = Annotated[Name, Field(json_schema_extra={"enum": [str(kind) for kind in TaskType]})]
OptionalName = Annotated[str, StringConstraints(max_length=64)]
OptionalTypeName = Annotated[
    OptionalName, Field(json_schema_extra={"enum": ["", *(str(kind) for kind in TaskType)]})
]
Ids = Annotated[list[TaskId], Field(max_length=200)]
CommentBody = Annotated[str, StringConstraints(min_length=1, max_length=MAX_COMMENT)]


class TaskParams(Params):
    """Parameters with camelCase names, and no other (Spec: tasks 1)."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False)
