"""A manager tightens the tools of its own workers, and restores them (seed 000 §1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from core.decision import Code, refuse, require
from governance.staff import authority, rules
from mailroom.services import post_notice
from orgchart import catalogue
from orgchart.models import ToolOverride
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import ToolMode
from orgchart.tightening import clear_tool_override, set_tool_override
from toolbox.caller import Caller


def list_tightened(*, caller: Caller, agent: str | None) -> dict[str, Any]:
    """What is tightened for the caller's own workers, or for one of them.

    Raises Denied NOT_FOUND, NOT_YOURS.
    """
    if agent is None:
        workers: Sequence[Agent] = caller.policy.workers_of(caller.agent)
    else:
        workers = [_worker(caller, agent)]
    rows = ToolOverride.objects.filter(agent_id__in=[w.id for w in workers]).order_by("-id")
    return {
        "tightened": [
            {
                "agent": row.agent.handle if row.agent else "",
                "tool": row.tool,
                "modes": row.modes,
                "set_by": row.set_by,
                "reason": row.reason,
                "at": row.at,
            }
            for row in rows.select_related("agent")
        ],
        "policy_version": caller.policy.version,
    }


def tighten_tool(
    *,
    caller: Caller,
    agent: str,
    tool: str,
    modes: Sequence[ToolMode],
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> dict[str, Any]:
    """Leave a worker's tool these modes only; none takes the tool away.

    Raises Denied: NOT_FOUND, NOT_YOURS for who does not report to the caller or a tightening of
    somebody else, INVALID_PARAMS for anything that would loosen, VERSION_MISMATCH.
    """
    left = frozenset(modes)
    with transaction.atomic():
        version = authority.require_version(caller, expected_version)
        worker = _worker(caller, agent)
        standing = _standing(worker, tool)
        if standing is not None:
            require(rules.can_restore(caller.agent, standing.set_by, caller.policy))
        held = None if standing is None else frozenset(ToolMode(m) for m in standing.modes)
        entry = catalogue.known().get(tool)
        require(rules.can_leave(tool, left, entry, held))
        change = set_tool_override(
            organisation_id=caller.organisation_id,
            tool=tool,
            modes=left,
            tool_modes=entry.modes if entry else frozenset(),
            caller=caller,
            now=now,
            reason=reason,
            agent=authority.row_of(worker),
            expected_version=version,
        )
        _tell(caller, worker, f"{tool} was tightened", f"{_left(tool, left)} {reason}", now)
    return _answer(worker, tool, sorted(left), change.after.version)


def restore_tool(
    *,
    caller: Caller,
    agent: str,
    tool: str,
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> dict[str, Any]:
    """Take back a tightening of the caller's own: what role and tool give, never more.

    Raises Denied: NOT_FOUND where nothing is tightened, NOT_YOURS, VERSION_MISMATCH.
    """
    with transaction.atomic():
        version = authority.require_version(caller, expected_version)
        worker = _worker(caller, agent)
        standing = _standing(worker, tool)
        if standing is None:
            raise refuse(
                Code.NOT_FOUND,
                f"{tool} is not tightened for {worker.handle}",
                "manage_tools with action list shows what is",
                rule="only a tightening is restored",
            )
        require(rules.can_restore(caller.agent, standing.set_by, caller.policy))
        change = clear_tool_override(
            override=standing, caller=caller, now=now, reason=reason, expected_version=version
        )
        _tell(caller, worker, f"{tool} was restored", reason, now)
    return _answer(worker, tool, None, change.after.version)


def _worker(caller: Caller, name: str) -> Agent:
    worker = authority.find_agent(caller, name)
    require(rules.can_tighten(caller.agent, worker))
    return worker


def _standing(worker: Agent, tool: str) -> ToolOverride | None:
    return ToolOverride.objects.select_for_update().filter(agent_id=worker.id, tool=tool).first()


def _left(tool: str, modes: frozenset[ToolMode]) -> str:
    if not modes:
        return f"You no longer have {tool}."
    return f"You have {tool} in {', '.join(sorted(modes))} only."


def _tell(caller: Caller, worker: Agent, subject: str, body: str, now: datetime) -> None:
    if worker.active:
        post_notice(
            organisation_id=caller.organisation_id,
            recipient=worker,
            subject=f"{subject} by {caller.handle}",
            body=body,
            now=now,
        )


def _answer(worker: Agent, tool: str, modes: list[ToolMode] | None, version: int) -> dict[str, Any]:
    return {"agent": worker.handle, "tool": tool, "modes": modes, "policy_version": version}
