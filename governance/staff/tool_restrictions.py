"""Tool restrictions: a manager leaves its own workers fewer modes of a tool (Spec: tools 15)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from contracts.vocabulary import OrgAct
from core import paging
from core.database import is_in_last
from core.decision import Allow, Code, refuse
from governance.results import ChangedTool, ToolRestrictions
from governance.staff import org_changes, rules
from ledger.history import times_of_changes
from mailroom.delivery import send_system_mail
from orgchart import catalogue
from orgchart.models import ToolOverride
from orgchart.policy.compiled import Agent
from orgchart.policy.readership import can_tell
from orgchart.policy.vocabulary import ToolMode
from orgchart.tool_restrictions import clear_tool_restriction, set_tool_restriction
from toolbox.caller import Caller
from toolbox.quoting import one_line

HOUR = timedelta(hours=1)
LOOKED_AT = 1000
"""The newest changes of an organisation among which those of an agent are counted."""


def list_tool_restrictions(
    *, caller: Caller, agent: str | None, cursor: str | None, limit: int
) -> ToolRestrictions:
    """One page of the tool restrictions of the caller's own workers, or of one of them.

    The reason of another agent only where it may be told (Spec: mail 43). Raises Denied NOT_FOUND,
    NOT_YOURS, INVALID_PARAMS for a cursor that no list gave.
    """
    before = paging.number(cursor)
    if agent is None:
        workers: Sequence[Agent] = caller.policy.workers_of(caller.agent)
    else:
        workers = [_worker(caller, agent)]
    found = ToolOverride.objects.filter(agent_id__in=[w.id for w in workers]).order_by("-id")
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(found.select_related("agent")[: limit + 1])
    page, more = paging.cut(rows, limit, lambda row: row.id)
    return {
        "tightened": [
            {
                "agent": row.agent.handle if row.agent else "",
                "tool": row.tool,
                "modes": [ToolMode(mode) for mode in row.modes],
                "set_by": row.set_by,
                "reason": row.reason if _is_told_reason(caller, row.set_by) else "",
                "at": row.at,
            }
            for row in page
        ],
        "next_cursor": more,
        "policy_version": caller.policy.version,
    }


def restrict_tool(
    *,
    caller: Caller,
    agent: str,
    tool: str,
    modes: Sequence[ToolMode],
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> ChangedTool:
    """Leave a worker only these modes of a tool; no modes take the tool away.

    Raises Denied: NOT_FOUND, NOT_YOURS for an agent that does not report to the caller or a
    restriction set by another agent, INVALID_PARAMS for a mode it does not
    have now, VERSION_MISMATCH, RATE_LIMITED for too many within an hour.
    """
    left = frozenset(modes)
    with transaction.atomic():
        version = org_changes.require_policy(caller.policy, expected_version)
        worker = _worker_to_change(caller, agent, now)
        restriction = _lock_restriction(worker, tool)
        if restriction is not None:
            _require_changeable(caller, worker, restriction)
        held = None if restriction is None else frozenset(ToolMode(m) for m in restriction.modes)
        entry = catalogue.known().get(tool)
        caller.require(rules.can_restrict_to(tool, left, entry, held))
        change = set_tool_restriction(
            organisation_id=caller.organisation_id,
            tool=tool,
            modes=left,
            tool_modes=entry.modes if entry else frozenset(),
            caller=caller,
            now=now,
            reason=reason,
            agent=org_changes.row_of(worker),
            expected_version=version,
        )
        _notify(caller, worker, f"{tool} was restricted", _left(tool, left), reason, now)
    return _result(worker, tool, sorted(left), change.after.version)


def restore_tool(
    *,
    caller: Caller,
    agent: str,
    tool: str,
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> ChangedTool:
    """Remove a restriction that the caller set: the role's modes of the tool apply again.

    Raises Denied: NOT_FOUND where there is none, NOT_YOURS, VERSION_MISMATCH, RATE_LIMITED.
    """
    with transaction.atomic():
        version = org_changes.require_policy(caller.policy, expected_version)
        worker = _worker_to_change(caller, agent, now)
        restriction = _lock_restriction(worker, tool)
        if restriction is None:
            raise refuse(
                Code.NOT_FOUND,
                f"{tool} is not restricted for {worker.handle}",
                "manage_tools with action list shows the restrictions",
                rule="only a restriction is restored",
            )
        _require_changeable(caller, worker, restriction)
        change = clear_tool_restriction(
            restriction=restriction, caller=caller, now=now, reason=reason, expected_version=version
        )
        _notify(caller, worker, f"{tool} was restored", "The restriction was removed.", reason, now)
    return _result(worker, tool, None, change.after.version)


def _is_told_reason(caller: Caller, set_by: str) -> bool:
    """Whether the caller reads why a tool was restricted: people's words, and those of agents that
    may write to it. Managers that share a worker may be no contacts of each other.
    """
    writer = caller.policy.agents.get(set_by.removeprefix("agent:"))
    return writer is None or isinstance(can_tell(caller.policy, writer, caller.agent), Allow)


def _worker(caller: Caller, name: str) -> Agent:
    worker = org_changes.find_agent(caller, name)
    caller.require(rules.can_restrict_tools(caller.agent, worker))
    return worker


def _worker_to_change(caller: Caller, name: str, now: datetime) -> Agent:
    """A worker whose restrictions the caller changes: few enough in an hour, and by contract."""
    worker = _worker(caller, name)
    times = times_of_changes(caller.organisation_id, caller.actor, newest=LOOKED_AT)
    recent = sum(is_in_last(HOUR, at, now=now) for at in times)
    caller.require(rules.can_restrict_again(caller.agent, recent))
    _use_change(caller, worker, now)
    return worker


def _require_changeable(caller: Caller, worker: Agent, restriction: ToolOverride) -> None:
    set_by, policy = restriction.set_by, caller.policy
    caller.require(rules.can_change_restriction(caller.agent, worker, set_by, policy))


def _use_change(caller: Caller, worker: Agent, now: datetime) -> None:
    """Who changes the organisation restricts tools under a contract that names it too."""
    if rules.runs_organisation(caller.role):
        org_changes.use_change(caller, OrgAct.RESTRICT_TOOLS, worker.handle, now)


def _lock_restriction(worker: Agent, tool: str) -> ToolOverride | None:
    return ToolOverride.objects.select_for_update().filter(agent_id=worker.id, tool=tool).first()


def _left(tool: str, modes: frozenset[ToolMode]) -> str:
    if not modes:
        return f"You no longer have {tool}."
    return f"You have {tool} in {', '.join(sorted(modes))} only."


def _notify(
    caller: Caller, worker: Agent, subject: str, done: str, reason: str, now: datetime
) -> None:
    """Notify the worker, and say why where the caller may write to it (Spec: mail 43)."""
    if not worker.active:
        return
    is_told = isinstance(can_tell(caller.policy, caller.agent, worker), Allow)
    send_system_mail(
        organisation_id=caller.organisation_id,
        recipient=worker,
        subject=f"{subject} by {caller.handle}",
        body=f"{done} {one_line(reason)}" if is_told else done,
        quotes=[caller.agent.id] if is_told else [],
        now=now,
    )


def _result(worker: Agent, tool: str, modes: list[ToolMode] | None, version: int) -> ChangedTool:
    return {"agent": worker.handle, "tool": tool, "modes": modes, "policy_version": version}
