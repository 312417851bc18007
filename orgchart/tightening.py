"""Tightening a tool beyond what roles say, and taking that back."""

from __future__ import annotations

from datetime import datetime

from core.actions import Action
from core.actors import Actor
from core.deeds import Deed, require_deed
from orgchart.models import Agent, Organisation, ToolOverride
from orgchart.policy.vocabulary import ToolMode
from orgchart.services import PolicyChange, change_policy


def set_tool_override(  # noqa: PLR0913  each optional, each named by its caller
    *,
    organisation_id: int,
    tool: str,
    modes: frozenset[ToolMode],
    tool_modes: frozenset[ToolMode],
    caller: Actor,
    now: datetime,
    reason: str,
    agent: Agent | None = None,
    role_id: int | None = None,
    expected_version: int | None = None,
    preview: bool = False,
) -> PolicyChange:
    """Tighten a tool for an agent, a role or everybody (seed 002 §3.1).

    `tool_modes` are the modes the tool itself declares. Raises ValueError when `modes` holds one
    that is not among them: an override never loosens.
    """
    require_deed(caller, Deed.RESTRICT_TOOL, reason=reason)
    loose = modes - tool_modes
    if loose:
        raise ValueError(
            f"an override of {tool} can only tighten; {', '.join(sorted(loose))} is not among its "
            f"own modes ({', '.join(sorted(tool_modes)) or 'none'})"
        )

    def apply(row: Organisation) -> None:
        ToolOverride.objects.update_or_create(
            organisation=row,
            tool=tool,
            agent=agent,
            role=None if role_id is None else row.roles.get(id=role_id),
            defaults={
                "modes": [str(mode) for mode in sorted(modes)],
                "set_by": caller.actor,
                "reason": reason,
            },
        )

    return change_policy(
        organisation_id=organisation_id,
        apply=apply,
        caller=caller,
        action=Action.TOOL_TIGHTENED,
        now=now,
        reason=reason,
        subject=f"tool:{tool}",
        expected_version=expected_version,
        preview=preview,
    )


def clear_tool_override(
    *,
    override: ToolOverride,
    caller: Actor,
    now: datetime,
    reason: str,
    expected_version: int | None = None,
    preview: bool = False,
) -> PolicyChange:
    """Take a tightening back: the tool is what the pack and the tool itself give, never more."""
    require_deed(caller, Deed.RESTRICT_TOOL, reason=reason)
    return change_policy(
        organisation_id=override.organisation_id,
        apply=lambda _row: ToolOverride.objects.filter(id=override.id).delete() and None,
        caller=caller,
        action=Action.TOOL_RESTORED,
        now=now,
        reason=reason,
        subject=f"tool:{override.tool}",
        expected_version=expected_version,
        preview=preview,
    )
