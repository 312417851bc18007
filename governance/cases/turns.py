"""Whose turn it is: the agents of each office, and the events that tell them."""

from __future__ import annotations

from datetime import datetime

from core.actions import Action
from core.actors import Actor
from core.events import Event
from governance.cases.facts import Position
from governance.cases.officers import acted_in
from governance.cases.vocabulary import OFFICE_OF, State
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import Office

MOST_NOTIFIED = 20
"""Holders of one office who get an event when it is their turn."""


def next_holders(policy: Policy, at: Position, case_id: str) -> list[Agent]:
    """The active agents of the office whose turn it is.

    Who acted in another office of the case has no turn in it (Spec: constitution 37).
    """
    if at.state is not State.OPEN:
        return []
    office = OFFICE_OF[at.stage]
    elsewhere = {
        agent for agent, was in acted_in(case_id, policy.organisation_id) if was is not office
    }
    return [
        agent
        for agent in policy.agents.values()
        if agent.active and office in policy.roles[agent.role].offices and agent.id not in elsewhere
    ]


def _notified(policy: Policy, at: Position, case_id: str, caller: Actor) -> list[int]:
    """Those whose turn it is, without the one that acts."""
    holders = next_holders(policy, at, case_id)
    return sorted(one.id for one in holders if f"agent:{one.handle}" != caller.actor)[
        :MOST_NOTIFIED
    ]


def held_offices(policy: Policy) -> frozenset[Office]:
    """The offices that an active agent of the organisation holds."""
    roles = (policy.roles[agent.role] for agent in policy.agents.values() if agent.active)
    return frozenset(office for role in roles for office in role.offices)


def turn_events(
    policy: Policy, at: Position, case_id: str, caller: Actor, now: datetime
) -> list[Event]:
    """The events on the streams of those whose turn it is; they hold no content and no reason."""
    return [
        Event(
            action=Action.CASE_TURN,
            actor="system:cases",
            at=now,
            organisation_id=caller.organisation_id,
            subject=f"case:{case_id}",
            for_agent_id=agent_id,
            kind="case",
            details={"stage": at.stage.value, "round": at.round, "state": at.state.value},
        )
        for agent_id in _notified(policy, at, case_id, caller)
    ]
