"""Pause and resume on the pages of agents, and of organisations for all their agents."""

from __future__ import annotations

from typing import Any

from django.db.models import Subquery

from core.admin.acts import Act, ActRequest, Answer
from core.deeds import Deed
from orgchart.models import Agent, Organisation, Pause
from orgchart.pauses.services import (
    pause_agent,
    resume_agent,
    resume_everything,
    stop_everything,
)

STAYS = "Keys, work, mail and mode stay as they are."


def _pause(call: ActRequest) -> Answer:
    pause_agent(person=call.person, agent=call.row.handle, reason=call.reason, now=call.now)
    return f"{call.row.handle} is paused. Its calls are refused from now on."


def _resume(call: ActRequest) -> Answer:
    resume_agent(
        person=call.person,
        agent=call.row.handle,
        reason=call.reason,
        expected_pause=call.version,
        now=call.now,
    )
    return f"{call.row.handle} is resumed. Its next call is answered as before the pause."


def _stop(call: ActRequest) -> Answer:
    stop_everything(person=call.person, reason=call.reason, now=call.now)
    return f"Every agent of {call.row} is stopped. Their calls are refused from now on."


def _restart(call: ActRequest) -> Answer:
    resume_everything(
        person=call.person, reason=call.reason, expected_pause=call.version, now=call.now
    )
    return f"{call.row} runs again. Agents that were paused one by one stay paused."


def pause_number(row: Agent | Organisation) -> int | None:
    """The id of the open pause of a page's row, which its query gives; None while it runs."""
    number: int | None = row.own_pause  # type: ignore[union-attr]  # annotated by own_pause()
    return number


def own_pause(**whose: Any) -> Subquery:
    """The id of the open pause of each row: `agent=OuterRef("pk")`, or of an organisation."""
    return Subquery(Pause.objects.filter(**whose, ended_at=None).values("id")[:1])


def pause_facts(row: Agent | Organisation) -> list[tuple[str, str]]:
    """Who paused the row, since when and why; nothing while it runs."""
    found = Pause.objects.filter(id=pause_number(row) or 0).first()
    if found is None:
        return []
    since = f"{found.paused_at:%Y-%m-%d %H:%M} UTC"
    return [("Paused by", found.paused_by), ("Since", since), ("Reason", found.reason)]


PAUSE = Act(
    name="pause",
    title="Pause",
    icon="pause_circle",
    danger=True,
    deed=Deed.PAUSE_AGENT,
    explanation=f"Every call of the agent is refused, with your reason, from the next one on. "
    f"{STAYS}",
    perform=_pause,
    possible=lambda row: bool(row.active) and pause_number(row) is None,
)
RESUME = Act(
    name="resume",
    title="Resume",
    icon="play_circle",
    deed=Deed.PAUSE_AGENT,
    explanation="The agent can call again, with the keys, work, mail and mode that it had.",
    perform=_resume,
    possible=lambda row: pause_number(row) is not None,
    version=pause_number,
    facts=pause_facts,
)
STOP = Act(
    name="stop-everything",
    title="Stop everything",
    icon="front_hand",
    danger=True,
    deed=Deed.STOP_ORGANISATION,
    explanation="Every call of every agent of this organisation is refused, with your reason, "
    f"from the next one on. {STAYS}",
    perform=_stop,
    possible=lambda row: pause_number(row) is None,
)
RESTART = Act(
    name="resume-everything",
    title="Resume everything",
    icon="play_circle",
    deed=Deed.STOP_ORGANISATION,
    explanation="The agents can call again. Agents that were paused one by one stay paused.",
    perform=_restart,
    possible=lambda row: pause_number(row) is not None,
    version=pause_number,
    facts=pause_facts,
)
