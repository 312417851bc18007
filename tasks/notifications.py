"""Notifications about tasks: a system mail and an event on the agent's stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from core.actions import Action
from core.actors import System
from core.decision import Allow, listed
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

    told = []
    for agent, found in _by_agent(rows, policy):
        if len(found) == 1:
            subject, verb = f"Task #{found[0].number} can go on", "has"
        else:
            subject, verb = f"{len(found)} tasks can go on", "have"
        why = f"{what(agent)}; {_numbers(found)} {verb} no open blockers."
        told.append(_told(policy, agent, found, subject, why))
    _send(policy, told, Action.TASK_UNBLOCKED, now)
    return len(told)


def notify_free(rows: Sequence[TaskRow], *, policy: Policy, now: datetime) -> None:
    """Notify the agents that could take tasks which lost their owner: each by one mail for all."""
    told = []
    for agent, found in _by_agent([row for row in rows if not row.waits_for], policy):
        if len(found) == 1:
            subject, verb = f"Task #{found[0].number} is free again", "has"
        else:
            subject, verb = f"{len(found)} tasks are free again", "have"
        why = f"{_numbers(found)} {verb} no owner any more."
        told.append(_told(policy, agent, found, subject, why))
    _send(policy, told, Action.TASK_FREE, now)


def _by_agent(rows: Sequence[TaskRow], policy: Policy) -> Iterator[tuple[Agent, Sequence[TaskRow]]]:
    """Each agent that is to know of some of these tasks, with them."""
    theirs: dict[str, list[TaskRow]] = {}
    for row, agents in _with_agents(rows, policy):
        for agent in agents:
            theirs.setdefault(agent.handle, []).append(row)
    for handle, found in theirs.items():
        yield policy.agents[handle], found


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


def _numbers(rows: Sequence[TaskRow]) -> str:
    return listed([f"#{row.number}" for row in rows], most=LISTED)


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
    told = [_told(policy, agent, [row], subject, why(agent)) for agent in recipients]
    _send(policy, told, action, now)


class Told(NamedTuple):
    """What one agent is told of a task, or of several at once, and why."""

    letter: Letter
    number: int
    why: str


def _told(policy: Policy, agent: Agent, rows: Sequence[TaskRow], subject: str, why: str) -> Told:
    """The mail for an agent, with the texts that it may read; it lists the first of many tasks."""
    reader = readership_of(policy, agent)
    shown = [row for row in rows[:LISTED] if reader.covers_task(row)]
    quotes = [row.subject_writer for row in shown if row.subject_writer]
    body = why
    if len(rows) > 1:
        body = _list(shown, why)
    elif shown:
        subject = f"{subject}: {shown[0].subject}"
        body = _body(shown[0], why)
    return Told(Letter(agent, subject, body, quotes), rows[0].number, why)


def _send(policy: Policy, told: Sequence[Told], action: Action, now: datetime) -> None:
    """Send each system mail, and record an event for each agent that it reaches."""
    of = {each.letter.recipient.id: each for each in told}
    letters = [each.letter for each in told]
    reached = send_system_mails(letters, organisation_id=policy.organisation_id, now=now)
    system = System(name="tasks", organisation_id=policy.organisation_id)
    insert_events(
        Event.by(
            system,
            action,
            at=now,
            subject=subject_of(policy, of[agent.id].number),
            kind="task",
            for_agent_id=agent.id,
            details={"why": of[agent.id].why},
        )
        for agent in reached
    )


def _list(rows: Sequence[TaskRow], why: str) -> str:
    lines = [f"- #{row.number}: {one_line(row.subject)}" for row in rows]
    step = "Read one with task_get; take it with task_update and your handle as owner."
    return "\n".join([why, "", *lines, "", step])


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
