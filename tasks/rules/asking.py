"""The agents that a refusal tells an agent to ask: those it can reach (Spec: wire 39); pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orgchart.policy.compiled import Agent
from orgchart.policy.parties import Board
from orgchart.policy.readership import may_contact
from orgchart.policy.vocabulary import Visibility
from tasks.rules.actors import TaskActor
from tasks.rules.values import TaskRow

MAX_NAMED = 5
"""Agents that a refusal names at most."""


def may_ask(actor: TaskActor, other: Agent) -> bool:
    """Whether the actor reaches another, active agent; a person of the Board reaches every one.

    By a contact rule without a contract, or by a comment where everyone reads every task.
    """
    if not other.active:
        return False
    if isinstance(actor.party, Board):
        return True
    reads_all = actor.policy.settings["task_visibility"] == Visibility.ALL
    reaches = reads_all or may_contact(actor.policy, actor.party, other)
    return reaches and not actor.is_agent(other.id)


def active_leads(actor: TaskActor, task: TaskRow) -> Iterable[TaskActor]:
    """The active task leads of the actor's organisation that read a task, by their handles."""
    agents = sorted(actor.policy.agents.values(), key=lambda one: one.handle)
    leads = (TaskActor(actor.policy, one) for one in agents if one.active)
    return (lead for lead in leads if lead.is_lead and lead.readership.covers_task(task))


def leads_to_ask(actor: TaskActor, task: TaskRow, could: Callable[[TaskActor], bool]) -> str:
    """The task leads that the actor may ask and who could do it, as `a or b`; '' for none."""
    able = [
        lead.handle
        for lead in active_leads(actor, task)
        if isinstance(lead.party, Agent) and could(lead) and may_ask(actor, lead.party)
    ]
    return " or ".join(able[:MAX_NAMED])
