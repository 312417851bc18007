"""Notifications about tasks: a system mail and an event on the agent's stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from core.actions import Action
from core.actors import System
from core.decision import Allow
from core.events import Event
from ledger.services import insert_events
from mailroom.delivery import Letter, send_system_mails
from orgchart.policy.compiled import Agent, Policy
from tasks.rules.changes import subject_of
from tasks.rules.ownership import can_take
from tasks.rules.values import TaskRow
from tasks.rules.visibility import readership_of
from tasks.vocabulary import Status
from toolbox.quoting import one_line

MAX_NOTIFIED = 200
"""Agents notified of one task; the others find it with task_recommend."""
LISTED = 20
"""Tasks that are named to an agent which is notified of several at once."""


def possible_owners(policy: Policy, row: TaskRow) -> list[Agent]:
    """Active agents who could take the task and read it; agents of its required role first."""
    able = [
        agent
        for agent in policy.agents.values()
        if agent.active
        and isinstance(can_take(policy, agent, row.required_role, row.task_type), Allow)
        and readership_of(policy, agent).covers_task(row)
    ]
    able.sort(key=lambda agent: (agent.role != row.required_role, agent.handle))
    return able[:MAX_NOTIFIED]


def notify_unblocked(
    rows: Sequence[TaskRow],
    ended: TaskRow,
    status: Status | None,
    *,
    policy: Policy,
    now: datetime,
) -> int:
    """Notify the owner of each task whose last blocker ended, or else who could take it.

    Many tasks may have waited for one: each agent gets one mail, not one for each of them. Returns
    how many agents were notified.
    """

    def what(agent: Agent) -> str:
        seen = readership_of(policy, agent).covers_task(ended)
        return f"Task #{ended.number} is {status or 'ended'}" if seen else "The last one ended"

    theirs: dict[str, list[TaskRow]] = {}
    for row, agents in _with_agents(rows, policy):
        for agent in agents:
            theirs.setdefault(agent.handle, []).append(row)
    alone: dict[int, list[Agent]] = {}
    for handle, of_agent in theirs.items():
        if len(of_agent) == 1:
            alone.setdefault(of_agent[0].number, []).append(policy.agents[handle])
    for row in (each for each in rows if each.number in alone):

        def why(agent: Agent, number: int = row.number) -> str:
            return f"{what(agent)}; #{number} has no open blockers."

        notify_agents(
            policy,
            alone[row.number],
            row,
            action=Action.TASK_UNBLOCKED,
            subject=f"Task #{row.number} can go on",
            why=why,
            now=now,
        )
    several = {
        handle: TasksTold(
            f"{what(policy.agents[handle])}; {_numbers(found)} have no open blockers.", found
        )
        for handle, found in theirs.items()
        if len(found) > 1
    }
    _notify_of_several(policy, several, now)
    return len(theirs)


def _with_agents(
    rows: Sequence[TaskRow], policy: Policy
) -> Iterator[tuple[TaskRow, Sequence[Agent]]]:
    """Each task with its owner, or with who could take it: the same for tasks that are alike."""
    found: dict[tuple[str, str, int | None], list[Agent]] = {}
    for row in rows:
        owner = row.owner_in(policy)
        if owner:
            yield row, [owner]
            continue
        like = (row.required_role, row.task_type, row.subject_writer)
        if like not in found:
            found[like] = possible_owners(policy, row)
        yield row, found[like]


class TasksTold(NamedTuple):
    """Tasks of which one agent is notified at once, and why."""

    why: str
    rows: Sequence[TaskRow]


def _numbers(rows: Sequence[TaskRow]) -> str:
    more = len(rows) - LISTED
    named = ", ".join(f"#{row.number}" for row in rows[:LISTED])
    return f"{named} and {more} more" if more > 0 else named


def _notify_of_several(policy: Policy, told: Mapping[str, TasksTold], now: datetime) -> None:
    """Send one system mail and record one event for each agent; its first tasks are listed."""
    letters = []
    for handle, (why, rows) in told.items():
        reader = readership_of(policy, policy.agents[handle])
        shown = [row for row in rows[:LISTED] if reader.covers_task(row)]
        lines = [f"- #{row.number}: {one_line(row.subject)}" for row in shown]
        step = "Read one with task_get; take it with task_update and your handle as owner."
        quotes = [row.subject_writer for row in shown if row.subject_writer]
        body = "\n".join([why, "", *lines, "", step])
        letters.append(Letter(policy.agents[handle], f"{len(rows)} tasks can go on", body, quotes))
    reached = send_system_mails(letters, organisation_id=policy.organisation_id, now=now)
    system = System(name="tasks", organisation_id=policy.organisation_id)
    insert_events(
        Event.by(
            system,
            Action.TASK_UNBLOCKED,
            at=now,
            subject=subject_of(policy, told[agent.handle].rows[0].number),
            kind="task",
            for_agent_id=agent.id,
            details={"why": told[agent.handle].why},
        )
        for agent in reached
    )


def notify_agents(
    policy: Policy,
    recipients: Sequence[Agent],
    row: TaskRow,
    *,
    action: Action,
    subject: str,
    why: Callable[[Agent], str],
    now: datetime,
) -> None:
    """Send a system mail and record an event for each agent; skip agents that have left.

    Many cost the caller one wait: an update may be announced to MAX_NOTIFIED agents.

    The task's subject goes only to agents that may read it (Spec: tasks 34).
    """
    system = System(name="tasks", organisation_id=policy.organisation_id)
    reasons, letters = {}, []
    for agent in recipients:
        reasons[agent.id] = reason = why(agent)
        is_reader = readership_of(policy, agent).covers_task(row)
        about = f"{subject}: {row.subject}" if is_reader else subject
        quotes = [row.subject_writer] if is_reader and row.subject_writer else []
        body = _body(row, reason) if is_reader else reason
        letters.append(Letter(agent, about, body, quotes))
    reached = send_system_mails(letters, organisation_id=policy.organisation_id, now=now)
    insert_events(
        Event.by(
            system,
            action,
            at=now,
            subject=subject_of(policy, row.number),
            kind="task",
            for_agent_id=agent.id,
            details={"why": reasons[agent.id]},
        )
        for agent in reached
    )


def _body(row: TaskRow, why: str) -> str:
    return "\n".join(
        [
            why,
            "",
            f"subject: {one_line(row.subject)}",
            f"requiredRole: {row.required_role or 'any'}",
            f"taskType: {row.task_type or 'none'}",
            f"version: {row.version}",
            "",
            f'Read it with task_get {{"taskId": "{row.number}"}};',
            "take it with task_update and your handle as owner.",
        ]
    )
