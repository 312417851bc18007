"""Pause and resume on the pages of agents, and of organisations for all their agents."""

from __future__ import annotations

from typing import Any

from django.db.models import Subquery
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.actors import actor_name
from core.admin.acts import Act, ActRequest, Answer
from core.permissions import Deed
from orgchart.models import Agent, Organisation, Pause
from orgchart.pauses.services import (
    pause_agent,
    resume_agent,
    resume_everything,
    stop_everything,
    take_over_pause,
)


def _pause(call: ActRequest) -> Answer:
    pause_agent(person=call.person, agent=call.row.handle, reason=call.reason, now=call.now)
    return gettext("%(agent)s is paused. Its calls are refused from now on.") % {
        "agent": call.row.handle
    }


def _resume(call: ActRequest) -> Answer:
    resume_agent(
        person=call.person,
        agent=call.row.handle,
        reason=call.reason,
        expected_pause=call.version,
        now=call.now,
    )
    return gettext("%(agent)s is resumed. Its next call is answered as before the pause.") % {
        "agent": call.row.handle
    }


def _take_over(call: ActRequest) -> Answer:
    take_over_pause(
        person=call.person,
        agent=call.row.handle,
        reason=call.reason,
        expected_pause=call.version,
        now=call.now,
    )
    return gettext("%(agent)s stays paused until the Board resumes it.") % {
        "agent": call.row.handle
    }


def _stop(call: ActRequest) -> Answer:
    stop_everything(person=call.person, reason=call.reason, now=call.now)
    return gettext(
        "Every agent of %(organisation)s is stopped. Their calls are refused from now on."
    ) % {"organisation": call.row}


def _restart(call: ActRequest) -> Answer:
    resume_everything(
        person=call.person, reason=call.reason, expected_pause=call.version, now=call.now
    )
    return gettext(
        "%(organisation)s runs again. Agents that were paused one by one stay paused."
    ) % {"organisation": call.row}


def pause_number(row: Agent | Organisation) -> int | None:
    """The id of the open pause of a page's row, which its query gives; None while it runs."""
    number: int | None = row.own_pause  # type: ignore[union-attr]  # annotated by own_pause()
    return number


def own_pause(field: str = "id", **whose: Any) -> Subquery:
    """A field of the open pause of each row: `agent=OuterRef("pk")`, or of an organisation."""
    return Subquery(Pause.objects.filter(**whose, ended_at=None).values(field)[:1])


def pause_facts(row: Agent | Organisation) -> list[tuple[str, str]]:
    """Who paused the row, since when and why; nothing while it runs."""
    found = Pause.objects.filter(id=pause_number(row) or 0).first()
    if found is None:
        return []
    since = f"{found.paused_at:%Y-%m-%d %H:%M} UTC"
    return [
        (gettext("Paused by"), actor_name(found.paused_by)),
        (gettext("Since"), since),
        (gettext("Reason"), found.reason),
    ]


PAUSE = Act(
    name="pause",
    title=_("Pause"),
    icon="pause_circle",
    danger=True,
    deed=Deed.PAUSE_AGENT,
    explanation=_(
        "Every call of the agent is refused, with your reason, from the next one on. "
        "Keys, work, mail and mode stay as they are."
    ),
    perform=_pause,
    possible=lambda row: bool(row.active) and pause_number(row) is None,
)
RESUME = Act(
    name="resume",
    title=_("Resume"),
    icon="play_circle",
    deed=Deed.PAUSE_AGENT,
    explanation=_("The agent can call again, with the keys, work, mail and mode that it had."),
    perform=_resume,
    possible=lambda row: pause_number(row) is not None,
    version=pause_number,
    facts=pause_facts,
)
TAKE_OVER = Act(
    name="take-over-pause",
    title=_("Take over pause"),
    icon="lock",
    deed=Deed.TAKE_OVER_PAUSE,
    explanation=_(
        "The agent stays paused, with your reason, and from now on only a member of the Board "
        "resumes it."
    ),
    perform=_take_over,
    possible=lambda row: row.is_paused_by_board is False,
    version=pause_number,
    facts=pause_facts,
)
STOP = Act(
    name="stop-everything",
    title=_("Stop everything"),
    icon="front_hand",
    danger=True,
    deed=Deed.STOP_ORGANISATION,
    explanation=_(
        "Every call of every agent of this organisation is refused, with your reason, from the "
        "next one on. Keys, work, mail and mode stay as they are."
    ),
    perform=_stop,
    possible=lambda row: pause_number(row) is None,
)
RESTART = Act(
    name="resume-everything",
    title=_("Resume everything"),
    icon="play_circle",
    deed=Deed.STOP_ORGANISATION,
    explanation=_("The agents can call again. Agents that were paused one by one stay paused."),
    perform=_restart,
    possible=lambda row: pause_number(row) is not None,
    version=pause_number,
    facts=pause_facts,
)
