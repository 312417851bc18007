"""Telling agents that a task is there for them: a notice, and an event on their stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.actions import Action
from core.actors import System
from core.decision import Allow, Code, Denied
from ledger.services import record
from mailroom.delivery import send_system_mail
from orgchart.policy.compiled import Agent, Policy
from tasks.ownership import can_take
from tasks.parties import Hand
from tasks.rows import Row, subject_of
from tasks.vocabulary import Status
from toolbox.wake import wake

MOST = 200
"""Agents told of one task; the others find it with task_recommend."""


def takers(policy: Policy, row: Row) -> list[Agent]:
    """Active agents who could take the task, by handle: its own role first."""
    able = [
        agent
        for agent in policy.agents.values()
        if agent.active
        and isinstance(can_take(policy, agent, row.required_role, row.task_type), Allow)
    ]
    return sorted(able, key=lambda agent: (agent.role != row.required_role, agent.handle))[:MOST]


def announce_free(
    rows: Sequence[Row], ended: Row, status: Status | None, *, hand: Hand, now: datetime
) -> None:
    """Tell of tasks whose last blocker has ended: their owners, else those who could take them."""
    for row in rows:
        owner = row.owner_in(hand.policy)
        told = [owner] if owner else takers(hand.policy, row)
        why = f"Task #{ended.number} is {status or 'ended'}, and #{row.number} waits for nothing."
        tell(
            hand.policy,
            told,
            row,
            action=Action.TASK_UNBLOCKED,
            subject=f"Task #{row.number} can go on: {row.subject}",
            why=why,
            now=now,
        )


def tell(
    policy: Policy,
    told: Sequence[Agent],
    row: Row,
    *,
    action: Action,
    subject: str,
    why: str,
    now: datetime,
) -> None:
    """One notice and one event for each of these agents; who has left meanwhile is passed over."""
    system = System(name="tasks", organisation_id=policy.organisation_id)
    body = "\n".join(
        [
            why,
            "",
            f"subject: {row.subject}",
            f"requiredRole: {row.required_role or 'any'}",
            f"taskType: {row.task_type or 'none'}",
            f"version: {row.version}",
            "",
            f'Read it with task_get {{"taskId": "{row.number}"}};',
            "take it with task_update and your handle as owner.",
        ]
    )
    for agent in told:
        try:
            send_system_mail(
                organisation_id=policy.organisation_id,
                recipient=agent,
                subject=subject,
                body=body,
                now=now,
            )
        except Denied as left:
            if left.deny.code is not Code.RECIPIENT_INACTIVE:
                raise
            continue
        record(
            action,
            by=system,
            at=now,
            subject=subject_of(policy, row.number),
            kind="task",
            for_agent_id=agent.id,
            details={"why": why},
        )
        wake(agent.id)
