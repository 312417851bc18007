"""Pausing and resuming one agent or all of an organisation; effective at the next call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q
from django.db.models.functions import Coalesce

from core.actions import Action
from core.actors import Person
from core.decision import Code, Denied, refuse, require
from core.hooks import Hook
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from ledger.services import record
from orgchart.models import Agent
from orgchart.pauses.models import Pause
from orgchart.pauses.rules import PauseFacts, can_resume
from orgchart.policy.names import unknown_agent
from orgchart.second_person.rules import is_of_board


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A pause that ended; `agent_id` None: of every agent of the organisation."""

    organisation_id: int
    agent_id: int | None
    now: datetime


resumed = Hook[[Resumed], None]("what stood still during a pause goes on, in its transaction")


def pause_agent(*, person: Person, agent: str, reason: str, now: datetime) -> Pause:
    """Stop one agent: its calls are refused from the next one on; nothing of it changes.

    Raises Denied: NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND, INVALID_TRANSITION for
    one that is paused or deactivated.
    """
    require_deed(person, Deed.PAUSE_AGENT, reason=reason)
    with transaction.atomic():
        row = _agent(person, agent)
        if not row.active:
            raise _settled(f"{agent} is deactivated")
        pause = _begin(person, row, reason, now)
        _record(person, pause, Action.AGENT_PAUSED, "active", "pause_agent", reason, now)
    return pause


def resume_agent(
    *, person: Person, agent: str, reason: str, expected_pause: int | None, now: datetime
) -> None:
    """End the pause of one agent. Of a stop of the whole organisation this is no end.

    Raises Denied: NOT_YOURS, also for a pause by the Board that another group ends, INVALID_PARAMS,
    NOT_FOUND, INVALID_TRANSITION for an agent that is not paused, VERSION_MISMATCH where it was
    resumed and paused again since `expected_pause`.
    """
    require_deed(person, Deed.PAUSE_AGENT, reason=reason)
    with transaction.atomic():
        pause = _end(person, _agent(person, agent), expected_pause, reason, now)
        condition = f"paused: {pause.reason}"[:200]
        _record(person, pause, Action.AGENT_RESUMED, condition, "resume_agent", reason, now)


def take_over_pause(
    *, person: Person, agent: str, reason: str, expected_pause: int | None, now: datetime
) -> None:
    """Make the pause of another group the Board's: from now on only the Board ends it.

    Raises Denied: NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND, INVALID_TRANSITION where
    the agent is not paused, or the Board paused it, VERSION_MISMATCH as `resume_agent`.
    """
    require_deed(person, Deed.TAKE_OVER_PAUSE, reason=reason)
    with transaction.atomic():
        pause = _open_pause(person, _agent(person, agent), expected_pause)
        if pause.by_board:
            raise _settled(f"the Board paused {agent}: {pause.reason}")
        condition = f"paused: {pause.reason}"[:200]
        pause.paused_by, pause.by_board, pause.reason = person.actor, True, reason.strip()
        pause.save(update_fields=["paused_by", "by_board", "reason"])
        _record(person, pause, Action.AGENT_PAUSED, condition, "take_over_pause", reason, now)


def stop_everything(*, person: Person, reason: str, now: datetime) -> Pause:
    """Stop every agent of the person's organisation, those hired later too, with one row.

    Raises Denied: NOT_YOURS, INVALID_PARAMS without a reason, INVALID_TRANSITION if it is stopped.
    """
    require_deed(person, Deed.STOP_ORGANISATION, reason=reason)
    with transaction.atomic():
        pause = _begin(person, None, reason, now)
        action = Action.ORGANISATION_STOPPED
        _record(person, pause, action, "running", "stop_everything", reason, now)
    return pause


def resume_everything(
    *, person: Person, reason: str, expected_pause: int | None, now: datetime
) -> None:
    """End the stop of the organisation; agents that were paused one by one stay paused.

    Raises Denied as `resume_agent`.
    """
    require_deed(person, Deed.STOP_ORGANISATION, reason=reason)
    with transaction.atomic():
        pause = _end(person, None, expected_pause, reason, now)
        condition, action = f"stopped: {pause.reason}"[:200], Action.ORGANISATION_RESUMED
        _record(person, pause, action, condition, "resume_everything", reason, now)


def pause_of(*, organisation_id: int, agent_id: int) -> PauseFacts | None:
    """What stops the agent now: the stop of the organisation before its own pause."""
    rows = Pause.objects.filter(
        Q(agent_id=agent_id) | Q(agent_id=None), organisation_id=organisation_id, ended_at=None
    )
    found = rows.order_by(F("agent_id").asc(nulls_first=True)).first()
    if found is None:
        return None
    return PauseFacts(found.reason, found.paused_at, found.agent_id is None, found.by_board)


def is_paused(agent_column: str) -> Exists:
    """Whether the agent that a column of the outer query names is stopped now.

    The outer query has a column `organisation_id`.
    """
    own, everyone = Q(agent_id=OuterRef(agent_column)), Q(agent_id=None)
    return Exists(
        Pause.objects.filter(
            own | everyone, organisation_id=OuterRef("organisation_id"), ended_at=None
        )
    )


def paused_until(*, organisation_id: int, agent_id: int, now: datetime) -> datetime | None:
    """When the last pause of the agent or of all ended; now while it lasts, None without one."""
    own_or_all = Q(agent_id=agent_id) | Q(agent_id=None)
    rows = Pause.objects.filter(own_or_all, organisation_id=organisation_id)
    last: datetime | None = rows.aggregate(last=Max(Coalesce("ended_at", now)))["last"]
    return last


def _agent(person: Person, handle: str) -> Agent:
    rows = Agent.objects.select_for_update(no_key=True)
    row = rows.filter(organisation_id=person.organisation_id, handle=handle).first()
    if row is None:
        raise Denied(unknown_agent(handle, "name an agent by its handle"))
    return row


def _begin(person: Person, agent: Agent | None, reason: str, now: datetime) -> Pause:
    pause, begun = Pause.objects.get_or_create(
        organisation_id=person.organisation_id,
        agent=agent,
        ended_at=None,
        defaults={
            "reason": reason.strip(),
            "paused_by": person.actor,
            "by_board": is_of_board(person),
            "paused_at": now,
        },
    )
    if not begun:
        raise _settled(f"{_name(pause)} is paused already, by {pause.paused_by}: {pause.reason}")
    return pause


def _open_pause(person: Person, agent: Agent | None, expected: int | None) -> Pause:
    """The pause that lasts, under a lock.

    Raises Denied INVALID_TRANSITION where there is none, VERSION_MISMATCH for another one.
    """
    rows = Pause.objects.select_for_update(of=("self",))
    pause = rows.filter(organisation_id=person.organisation_id, agent=agent, ended_at=None).first()
    if pause is None:
        raise _settled(f"{agent or 'the organisation'} is not paused")
    if expected not in (None, pause.id):
        raise refuse(
            Code.VERSION_MISMATCH,
            f"it was resumed, and paused again by {pause.paused_by}: {pause.reason}",
            "read the new reason, then decide again",
            rule="a form carries what it was read at (spec: people 8)",
        )
    return pause


def _end(
    person: Person, agent: Agent | None, expected: int | None, reason: str, now: datetime
) -> Pause:
    pause = _open_pause(person, agent, expected)
    require(can_resume(person, by_board=pause.by_board))
    pause.ended_at, pause.ended_by, pause.end_reason = now, person.actor, reason.strip()
    pause.save(update_fields=["ended_at", "ended_by", "end_reason"])
    resumed(Resumed(organisation_id=pause.organisation_id, agent_id=pause.agent_id, now=now))
    return pause


def _name(pause: Pause) -> str:
    return pause.agent.handle if pause.agent else pause.organisation.slug


def _settled(message: str) -> Denied:
    return refuse(
        Code.INVALID_TRANSITION, message, "reload the page", rule="paused or not (spec: people 39)"
    )


def _record(
    person: Person,
    pause: Pause,
    action: Action,
    condition: str,
    taken: str,
    reason: str,
    now: datetime,
) -> None:
    """Record the event and the intervention."""
    everyone = pause.agent is None
    subject = f"organisation:{_name(pause)}" if everyone else f"agent:{_name(pause)}"
    record(action, by=person, at=now, subject=subject, reason=reason.strip())
    record_intervention(
        person,
        deed=Deed.STOP_ORGANISATION if everyone else Deed.PAUSE_AGENT,
        subject=subject,
        trigger_condition=condition,
        action_taken=taken,
        reason=reason,
        now=now,
    )
