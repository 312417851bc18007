"""Parameters of tasks that only the organisation can judge: roles, types, owners, metadata."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from core.decision import Code, Denied, refuse
from orgchart.policy.compiled import Agent, Policy
from tasks.vocabulary import TaskType

MAX_METADATA = 64 * 1024
"""Bytes of a task's metadata as JSON."""


def checked_role(policy: Policy, name: str | None) -> str:
    """A required role as it is stored, '' for none (seed 001 §3.2). Raises Denied."""
    if name is None:
        return ""
    if name not in policy.roles:
        raise _invalid("requiredRole", name, sorted(policy.roles))
    return name


def checked_type(name: str | None) -> str:
    """A task type as it is stored, '' for none (seed 001 §3.2). Raises Denied."""
    if name is None:
        return ""
    if name not in list(TaskType):
        raise _invalid("taskType", name, [str(kind) for kind in TaskType])
    return name


def checked_metadata(metadata: dict[str, Any]) -> str:
    """Metadata as JSON text. Raises Denied when it is too much."""
    text = to_json(metadata).decode()
    if len(text) > MAX_METADATA:
        problem = f"more than {MAX_METADATA} bytes"
        raise refuse(
            Code.INVALID_PARAMS,
            f"metadata: {problem}",
            "keep less in metadata, and the rest in documents",
            rule="parameters of tasks",
            metadata=problem,
        )
    return text


def owner_named(policy: Policy, name: str) -> Agent | None:
    """The agent that an owner's name means; None for '' (release). Raises Denied."""
    if not name:
        return None
    agent = policy.resolve(name)
    if agent is None:
        problem = "no agent of this organisation"
        raise refuse(
            Code.INVALID_PARAMS,
            f"owner: {name[:64]!r} is {problem}",
            "name an agent by its handle, or '' to release the task",
            rule="owners are agents",
            owner=problem,
        )
    if not agent.active:
        raise refuse(
            Code.RECIPIENT_INACTIVE,
            f"{agent.handle} is deactivated and takes no tasks",
            "name an active agent as owner",
            rule="owners are active",
        )
    return agent


def _invalid(field: str, given: str, known: list[str]) -> Denied:
    return refuse(
        Code.INVALID_PARAMS,
        f'Invalid {field}: "{given[:64]}". Valid: {", ".join(known)}.',
        f"name one of these as {field}, or leave it out",
        rule=f"{field} (seed 001 §3.2)",
        **{field: f"not one of {', '.join(known)}"},
    )
