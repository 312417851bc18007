"""From the caller of a service to the actor that the rules know."""

from __future__ import annotations

from datetime import datetime

from core.actors import Actor
from core.permissions import Deed, require_deed
from orgchart.policy.compiled import Policy
from orgchart.policy_cache import current_policy
from tasks.rules.actors import TaskActor
from toolbox.caller import Caller
from toolbox.denial_limits import EVENT_BYTES
from toolbox.quotas import charging


def actor_of(caller: Actor, deed: Deed = Deed.MANAGE_TASK) -> TaskActor:
    """The calling agent under its policy, or a person whose groups allow the deed.

    Raises Denied NOT_YOURS.
    """
    if not isinstance(caller, Caller):
        require_deed(caller, deed)
    return reader_of(caller)


def reader_of(caller: Actor) -> TaskActor:
    """The calling agent under its policy, or a person, whose page decided what it may see."""
    if isinstance(caller, Caller):
        return TaskActor(caller.policy, caller.agent)
    return TaskActor(current_policy(caller.organisation_id))


def charge_rows(caller: Actor, rows: int, now: datetime) -> None:
    """Count what an agent's call writes besides its own task: one call writes many rows.

    Spec: settings 6. Raises Denied QUOTA_EXCEEDED.
    """
    if isinstance(caller, Caller):
        charge_agent(caller.agent.id, caller.policy, rows, now)


def charge_agent(agent_id: int, policy: Policy, rows: int, now: datetime) -> None:
    """Count rows for an agent that need not be calling. Raises Denied QUOTA_EXCEEDED."""
    charging.charge(agent=agent_id, policy=policy, size=rows * EVENT_BYTES, now=now)
