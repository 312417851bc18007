"""Taking an agent out of service and back: what people at the Board do, and what rooms build on."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any, Protocol

from core.actions import Action
from core.actors import Actor
from core.decision import Code, refuse
from core.deeds import Deed, require_deed
from orgchart.models import Agent, ApiKey, Organisation
from orgchart.policy import compiled
from orgchart.services import PolicyChange, change_policy


class HandOver(Protocol):
    """Hand what an agent holds to a successor (None: the Board); what it was, for the event."""

    def __call__(
        self,
        *,
        caller: Actor,
        leaver: compiled.Agent,
        successor: compiled.Agent | None,
        reason: str,
        now: datetime,
    ) -> Mapping[str, Any]:
        """Before the deactivation, in its transaction."""


_hand_overs: list[HandOver] = []


def when_leaving(hand_over: HandOver) -> None:
    """Have a room above hand over what agents hold there when a pack has them no more."""
    if hand_over not in _hand_overs:
        _hand_overs.append(hand_over)


def hand_over(
    *,
    caller: Actor,
    policy: compiled.Policy,
    staying: Container[str],
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Hand over what the active agents of a policy that do not stay hold, by handle.

    Each hands to the next above it that stays and is active.
    """
    held: dict[str, Any] = {}
    for leaver in policy.agents.values():
        if not leaver.active or leaver.handle in staying:
            continue
        successor = next((a for a in policy.chain_above(leaver) if a.handle in staying), None)
        for one in _hand_overs:
            held[leaver.handle] = one(
                caller=caller, leaver=leaver, successor=successor, reason=reason, now=now
            )
    return held


def deactivate_agent(
    *,
    handle: str,
    caller: Actor,
    now: datetime,
    reason: str,
    expected_version: int | None = None,
    preview: bool = False,
    details: Mapping[str, Any] | None = None,
) -> PolicyChange:
    """Take an agent out of service: it proves nobody, receives nothing and leads nobody.

    Its keys are revoked; its name, mails and events stay. What it still holds is handed over by
    rooms above, which say so in `details` of the event. Raises Denied NOT_FOUND,
    INVALID_TRANSITION where it is so already, VERSION_MISMATCH, INVALID_PARAMS where an invariant
    would break (a group without its leader).
    """
    require_deed(caller, Deed.ACTIVATE_AGENT, reason=reason)

    def apply(organisation: Organisation) -> None:
        row = _agent(organisation, handle, active=True)
        row.active, row.is_leader = False, False
        row.save(update_fields=["active", "is_leader"])
        ApiKey.objects.filter(agent=row, revoked_at=None).update(
            revoked_at=now, revoked_by=caller.actor
        )

    return change_policy(
        organisation_id=caller.organisation_id,
        apply=apply,
        caller=caller,
        action=Action.AGENT_DEACTIVATED,
        now=now,
        reason=reason,
        subject=f"agent:{handle}",
        expected_version=expected_version,
        preview=preview,
        details=details,
    )


def activate_agent(
    *,
    handle: str,
    caller: Actor,
    now: datetime,
    reason: str,
    expected_version: int | None = None,
    preview: bool = False,
) -> PolicyChange:
    """Bring a deactivated agent back to its place; it needs a new key.

    Raises Denied like `deactivate_agent`.
    """
    require_deed(caller, Deed.ACTIVATE_AGENT, reason=reason)

    def apply(organisation: Organisation) -> None:
        row = _agent(organisation, handle, active=False)
        row.active = True
        row.save(update_fields=["active"])

    return change_policy(
        organisation_id=caller.organisation_id,
        apply=apply,
        caller=caller,
        action=Action.AGENT_ACTIVATED,
        now=now,
        reason=reason,
        subject=f"agent:{handle}",
        expected_version=expected_version,
        preview=preview,
    )


def _agent(organisation: Organisation, handle: str, *, active: bool) -> Agent:
    """The agent, which must be in the state that the change starts from."""
    row = Agent.objects.filter(organisation=organisation, handle=handle).first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            f"there is no agent {handle!r} in this organisation",
            "name an agent by its handle",
            rule="the agent exists",
        )
    if row.active is not active:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"{handle} is {'active' if row.active else 'deactivated'} already",
            "nothing is left to do",
            rule="in service or not",
        )
    return row
