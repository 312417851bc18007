"""Notifications about tasks: a system mail and an event on the agent's stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

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
) -> None:
    """Notify the owner of each task whose last blocker ended, or else who could take it."""
    for row in rows:
        owner = row.owner_in(policy)

        def why(agent: Agent, row: TaskRow = row) -> str:
            seen = readership_of(policy, agent).covers_task(ended)
            what = f"Task #{ended.number} is {status or 'ended'}" if seen else "The last one ended"
            return f"{what}; #{row.number} has no open blockers."

        notify_agents(
            policy,
            [owner] if owner else possible_owners(policy, row),
            row,
            action=Action.TASK_UNBLOCKED,
            subject=f"Task #{row.number} can go on",
            why=why,
            now=now,
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
