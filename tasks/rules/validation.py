"""Parameters that depend on the organisation or on a limit: roles, types, metadata; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from core.blank import is_blank
from core.decision import Allow, Code, Decision, Denied, deny, listed, refuse
from core.strictjson import MAX_ELEMENTS, MAX_KEYS, require_shape
from orgchart.policy.compiled import Policy
from orgchart.policy.parties import Party
from tasks.rules.actors import read_permissions, roles_claiming
from tasks.rules.visibility import roles_to_require
from tasks.vocabulary import TaskType

MAX_METADATA = 64 * 1024
"""Bytes of a task's metadata as JSON."""


def validate_subject(text: str) -> str:
    """Return a subject that shows something (Spec: tasks 59). Raises Denied for a blank one."""
    if not is_blank(text):
        return text
    raise refuse(
        Code.INVALID_PARAMS,
        "subject: it is blank",
        "say in a few words what is to be done",
        rule="parameters of tasks",
        subject="it is blank",
    )


def validate_role(policy: Policy, name: str | None, writer: Party) -> str:
    """Return a required role as it is stored, '' for none (Spec: tasks 5). Raises Denied.

    The refusal names the roles that this writer's task may require; the Board's: every role.
    """
    if name is None:
        return ""
    if name not in policy.roles:
        raise _invalid("requiredRole", name, roles_to_require(policy, writer))
    return name


def validate_type(name: str | None) -> str:
    """Return a task type as it is stored, '' for none (Spec: tasks 6). Raises Denied."""
    if name is None:
        return ""
    if name not in list(TaskType):
        raise _invalid("taskType", name, [str(kind) for kind in TaskType])
    return name


def can_type_role(policy: Policy, role: str, task_type: str) -> Decision:
    """Decide whether a required role claims tasks of a type at all (Spec: tasks 41)."""
    known = policy.roles.get(role)
    claims = read_permissions(known.permissions).claims if known else None
    if not task_type or claims is None or task_type in claims:
        return Allow("permissions (spec: tasks 40)")
    roles = " or ".join(roles_claiming(policy, task_type)) or "no role"
    return deny(
        Code.ROLE_MISMATCH,
        f'Tasks of type "{task_type}" are claimed by {roles}, not by "{role}".',
        f"require {roles}, or leave requiredRole or taskType out",
        rule="permissions (spec: tasks 40)",
    )


def validate_metadata(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON text. Raises Denied when it is too large.

    Several calls make it, and what was exported is read as strictly as one (Spec: tasks 28).
    """
    text = to_json(metadata).decode()
    if problem := _problem_of_size(metadata, text):
        raise refuse(
            Code.INVALID_PARAMS,
            f"metadata: {problem}",
            "keep less in metadata, and the rest in documents",
            rule="parameters of tasks",
            metadata=problem,
        )
    return text


def _problem_of_size(metadata: Mapping[str, Any], text: str) -> str:
    if len(text) > MAX_METADATA:
        return f"more than {MAX_METADATA} bytes"
    if len(metadata) > MAX_KEYS:
        return f"more than {MAX_KEYS} keys"
    try:
        require_shape(text.encode())
    except Denied:
        return f"more than {MAX_ELEMENTS} elements"
    return ""


def _invalid(field: str, given: str, known: list[str]) -> Denied:
    return refuse(
        Code.INVALID_PARAMS,
        f'Invalid {field}: "{given[:64]}". Valid: {listed(known)}.',
        f"name one of these as {field}, or leave it out",
        rule=f"{field} (spec: tasks 5, tasks 6)",
        **{field: f"not one of {listed(known)}"},
    )
