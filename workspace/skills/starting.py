"""A person starts a skill for an agent: the only way where the skill is reserved to people."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actions import Action
from core.actors import Person
from core.decision import Code, Denied, refuse
from core.permissions import Deed, require_deed
from ledger.services import record
from orgchart.pauses.services import pause_of
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.names import unknown_agent
from orgchart.policy_cache import current_policy
from toolbox.caller import Caller
from toolbox.frames.stack import present_frame
from toolbox.models import Session
from toolbox.sessions import effective_session
from toolbox.wake import wake
from workspace.results import StartedSkill
from workspace.skills.preparing import prepare_skill
from workspace.skills.services import open_skill


def start_skill(
    *, person: Person, agent: str, name: str, arguments: str, reason: str, now: datetime
) -> StartedSkill:
    """Open a skill in a frame for an agent, which goes on in it with all its sessions.

    Raises Denied: INVALID_PARAMS for an empty reason, RECIPIENT_UNKNOWN, RECIPIENT_INACTIVE,
    AGENT_PAUSED, and what `prepare_skill` and `open_skill` raise, except that a skill for people
    only is started.
    """
    require_deed(person, Deed.START_SKILL, reason=reason)
    policy = current_policy(person.organisation_id)
    card = policy.resolve(agent)
    if card is None:
        known = policy.agents
        raise Denied(
            unknown_agent(agent, "see the agents", code=Code.RECIPIENT_UNKNOWN, known=known)
        )
    if not card.active:
        raise refuse(Code.RECIPIENT_INACTIVE, f"{card.handle} is deactivated", "activate it first")
    pause = pause_of(organisation_id=policy.organisation_id, agent_id=card.id)
    if pause is not None:
        raise Denied(pause.refusal)
    caller = _standing(card, policy, now)
    skill = prepare_skill(caller=caller, name=name, arguments=arguments, now=now, person=True)
    with transaction.atomic():
        started = open_skill(caller=caller, skill=skill, now=now, person=True)
        record(
            Action.FRAME_OPENED_BY_PERSON,
            by=person,
            at=now,
            subject=f"frame:{started['frame_id']}",
            reason=reason,
            kind="frame",
            for_agent_id=card.id,
            details={"frame_id": started["frame_id"], "skill": started["name"]},
        )
        wake(card.id)
    return started


def _standing(agent: Agent, policy: Policy, now: datetime) -> Caller:
    """The agent on its standing session, as its own next call would find it."""
    row, _ = Session.objects.get_or_create(
        agent_id=agent.id,
        standing=True,
        defaults={"organisation_id": policy.organisation_id, "opened_at": now},
    )
    frame_id, frame_tools = present_frame(agent.id)
    return Caller(
        agent=agent,
        policy=policy,
        session=effective_session(row, policy),
        tool="use_skill",
        frame_id=frame_id,
        frame_tools=frame_tools,
    )
