"""Deactivating and activating agents, and reassigning their open work."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack

from core.actions import Action
from core.actors import Actor
from core.decision import Code, Denied, refuse
from core.hooks import Hook
from core.permissions import Deed, require_deed
from orgchart.keys import revoke_keys_of
from orgchart.models import Agent, Organisation
from orgchart.policy import compiled
from orgchart.policy.names import unknown_agent
from orgchart.services import ChangeRequest, PolicyChange, change_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """An agent that a pack removes, and the agent that takes over its work (None: the Board)."""

    caller: Actor
    leaver: compiled.Agent
    successor: compiled.Agent | None
    reason: str
    now: datetime


reassign_work = Hook[[Departure], Mapping[str, Any]]("reassign the open work of an agent")
"""Called before the deactivation, in its transaction; returns what it was, for the event."""


def reassign_work_of_leavers(
    *,
    caller: Actor,
    policy: compiled.Policy,
    staying: Container[str],
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Reassign the open work of the active agents that do not stay; what it was, by handle.

    It goes to the nearest active agent above that stays.
    """
    reassigned: dict[str, Any] = {}
    for leaver in policy.agents.values():
        if not leaver.active or leaver.handle in staying:
            continue
        successor = next((a for a in policy.chain_above(leaver) if a.handle in staying), None)
        departure = Departure(
            caller=caller, leaver=leaver, successor=successor, reason=reason, now=now
        )
        for work in reassign_work(departure):
            reassigned[leaver.handle] = work
    return reassigned


def deactivate_agent(
    *,
    handle: str,
    details: Mapping[str, Any] | None = None,
    **request: Unpack[ChangeRequest],
) -> PolicyChange:
    """Deactivate an agent: it can no longer call, receives no mail and leads no group.

    Its keys are revoked; its name, mails and events stay. Rooms above reassign its open work
    and put it into `details` of the event. Raises Denied NOT_FOUND,
    INVALID_TRANSITION where it is so already, VERSION_MISMATCH, INVALID_PARAMS where an invariant
    would break (a group without its leader).
    """
    require_deed(request["caller"], Deed.ACTIVATE_AGENT, reason=request["reason"])

    def apply(organisation: Organisation) -> None:
        row = _agent(organisation, handle, active=True)
        row.active, row.is_leader = False, False
        row.save(update_fields=["active", "is_leader"])
        revoke_keys_of(row, caller=request["caller"], now=request["now"])

    return change_policy(
        organisation_id=request["caller"].organisation_id,
        apply=apply,
        action=Action.AGENT_DEACTIVATED,
        subject=f"agent:{handle}",
        is_removal=True,
        details=details,
        **request,
    )


def activate_agent(*, handle: str, **request: Unpack[ChangeRequest]) -> PolicyChange:
    """Bring a deactivated agent back to its place; it needs a new key.

    The keys that a pack left it, when it was gone from there, are revoked. Raises Denied like
    `deactivate_agent`.
    """
    require_deed(request["caller"], Deed.ACTIVATE_AGENT, reason=request["reason"])

    def apply(organisation: Organisation) -> None:
        row = _agent(organisation, handle, active=False)
        row.active = True
        row.save(update_fields=["active"])
        revoke_keys_of(row, caller=request["caller"], now=request["now"])

    return change_policy(
        organisation_id=request["caller"].organisation_id,
        apply=apply,
        action=Action.AGENT_ACTIVATED,
        subject=f"agent:{handle}",
        **request,
    )


def _agent(organisation: Organisation, handle: str, *, active: bool) -> Agent:
    """The agent, which must be in the state that the change starts from."""
    row = Agent.objects.filter(organisation=organisation, handle=handle).first()
    if row is None:
        raise Denied(unknown_agent(handle, "name an agent by its handle"))
    if row.active is not active:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"{handle} is {'active' if row.active else 'deactivated'} already",
            "nothing is left to do",
            rule="in service or not",
        )
    return row
