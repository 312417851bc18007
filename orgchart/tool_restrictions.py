"""Restricting the modes of a tool beyond what roles say, and restoring it."""

from __future__ import annotations

from typing import Unpack

from core.actions import Action
from core.decision import Code, refuse
from core.permissions import Deed, require_deed
from orgchart import catalogue
from orgchart.models import Agent, Organisation, ToolOverride
from orgchart.policy.vocabulary import ToolMode
from orgchart.services import ChangeRequest, PolicyChange, change_policy


def set_tool_restriction(
    *,
    organisation_id: int,
    tool: str,
    modes: frozenset[ToolMode],
    tool_modes: frozenset[ToolMode],
    agent: Agent | None = None,
    role_id: int | None = None,
    **request: Unpack[ChangeRequest],
) -> PolicyChange:
    """Restrict a tool for an agent, a role or everybody (Spec: tools 14).

    `tool_modes` are the modes the tool itself declares. Raises ValueError when `modes` holds one
    that is not among them: a restriction never adds a mode.
    """
    require_deed(request["caller"], Deed.RESTRICT_TOOL, reason=request["reason"])
    loose = modes - tool_modes
    if loose:
        raise ValueError(
            f"a restriction of {tool} can only remove modes; {', '.join(sorted(loose))} is not "
            f"among its own modes ({', '.join(sorted(tool_modes)) or 'none'})"
        )

    def apply(row: Organisation) -> None:
        ToolOverride.objects.update_or_create(
            organisation=row,
            tool=tool,
            agent=agent,
            role=None if role_id is None else row.roles.get(id=role_id),
            defaults={
                "modes": [str(mode) for mode in sorted(modes)],
                "set_by": request["caller"].actor,
                "reason": request["reason"],
            },
        )

    return change_policy(
        organisation_id=organisation_id,
        apply=apply,
        action=Action.TOOL_TIGHTENED,
        subject=f"tool:{tool}",
        **request,
    )


def save_tool_restriction(*, row: ToolOverride, **request: Unpack[ChangeRequest]) -> PolicyChange:
    """Save a restriction as a person filled it in. Raises Denied like `set_tool_restriction`."""
    entry = catalogue.known().get(row.tool)
    try:
        return set_tool_restriction(
            organisation_id=row.organisation_id,
            tool=row.tool,
            modes=frozenset(ToolMode(mode) for mode in row.modes),
            tool_modes=entry.modes if entry else frozenset(),
            agent=row.agent,
            role_id=row.role_id,
            **request,
        )
    except ValueError as problem:
        raise refuse(
            Code.INVALID_PARAMS, str(problem), "choose fewer modes", rule="only removes modes"
        ) from problem


def clear_tool_restriction(
    *, restriction: ToolOverride, **request: Unpack[ChangeRequest]
) -> PolicyChange:
    """Remove a restriction: the tool has the modes that roles and the tool itself give."""
    require_deed(request["caller"], Deed.RESTRICT_TOOL, reason=request["reason"])
    return change_policy(
        organisation_id=restriction.organisation_id,
        apply=lambda _row: ToolOverride.objects.filter(id=restriction.id).delete() and None,
        action=Action.TOOL_RESTORED,
        subject=f"tool:{restriction.tool}",
        **request,
    )
