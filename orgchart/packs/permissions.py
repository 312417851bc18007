"""What a role may do with tasks: a mapping, or a list (Spec: tasks 40)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, TypeAdapter, ValidationInfo

from orgchart.packs.source import kind_of
from orgchart.packs.values import Distinct, Form, TaskType, problem, refuse_each
from orgchart.policy.vocabulary import Permission

EVERY_TYPE = "*"


class PermissionsForm(Form):
    """What a role may do with tasks."""

    claim_task_type: Annotated[
        bool | list[str],
        PlainValidator(
            lambda value, info: _claims(value, info),  # noqa: PLW0108  it is defined below
            json_schema_input_type=bool | str | list[str],
        ),
    ] = False
    update_own_tasks: bool = False
    comment_on_all_tasks: bool = False

    def given(self) -> dict[str, Any]:
        """Those that are given, in their usual order."""
        return {str(p): getattr(self, p) for p in Permission if p in self.model_fields_set}


_TASK_TYPE: TypeAdapter[str] = TypeAdapter(TaskType)
_TASK_TYPES: TypeAdapter[tuple[str, ...]] = TypeAdapter(Annotated[tuple[TaskType, ...], Distinct])


def _claims(value: Any, info: ValidationInfo) -> bool | list[str]:
    """A list of task types, or true for every type."""
    if isinstance(value, bool) or value == EVERY_TYPE:
        return bool(value) or []
    if isinstance(value, str):
        return [_TASK_TYPE.validate_python(value, context=info.context)]
    if isinstance(value, list):
        return list(_TASK_TYPES.validate_python(value, strict=True, context=info.context))
    raise problem(
        f"claim_task_type must be a list of task types, this is {kind_of(value)}",
        "write [a, b], or true for every type",
    )


def _permissions(value: Any, info: ValidationInfo) -> dict[str, Any]:
    """The mapping, or a list (Spec: tasks 40), as the mapping that is stored."""
    if not isinstance(value, list):
        return PermissionsForm.model_validate(value, context=info.context).given()
    found: dict[str, Any] = {}
    for at, item in enumerate(_PERMISSION_LIST.validate_python(value, context=info.context)):
        refuse_each(
            ((at,), problem(f"{key} is set twice", "keep one")) for key in item if key in found
        )
        found |= item
    return {str(name): found[name] for name in Permission if name in found}


def _permission(value: Any, info: ValidationInfo) -> dict[str, Any]:
    if isinstance(value, str):
        value = {value: True}
    if not isinstance(value, dict) or not value:
        kind = "empty" if value == {} else kind_of(value)
        raise problem(
            f"each of permissions must be a name or `name: value`, this is {kind}",
            f"write one of {', '.join(Permission)}, or take it out",
        )
    return PermissionsForm.model_validate(value, context=info.context).given()


_PERMISSION_LIST: TypeAdapter[list[dict[str, Any]]] = TypeAdapter(
    list[Annotated[dict[str, Any], PlainValidator(_permission)]]
)


Permissions = Annotated[
    dict[str, Any],
    PlainValidator(
        _permissions, json_schema_input_type=PermissionsForm | list[Permission | PermissionsForm]
    ),
]
