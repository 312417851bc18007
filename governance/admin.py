"""What people do that reaches through every room: agents out of service and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contracts.queries import open_contracts_of
from core.actors import System
from core.admin.acts import Act, ActRequest, Answer, ShownOnce, acts_for
from core.admin.refused import refused_as_text
from core.database import database_now
from core.decision import Code, Denied, refuse
from core.permissions import Deed
from governance.cases import admin as case_admin  # noqa: F401  registers its tables
from governance.interventions import admin as intervention_admin  # noqa: F401  registers its table
from governance.staff.deactivation import deactivate_by_person
from mailroom.models import Mail
from orgchart.admin.agents import KEY_REMARK
from orgchart.difference_words import all_in_language
from orgchart.keys import issue_key
from orgchart.models import Agent
from orgchart.second_person.edits import activating
from orgchart.second_person.services import propose_change, waiting_sentence
from orgchart.services import SecondPersonNeeded
from orgchart.staffing import activate_agent, deactivate_agent
from tasks.models import Task
from tasks.vocabulary import UNFINISHED

COUNTED = 1000
SHOWN = 200
"""Sentences of a preview, of each kind."""


def _deactivate(call: ActRequest) -> Answer:
    if call.version is None:
        raise refuse(
            Code.VERSION_MISMATCH,
            "the page has no policy version",
            "open it again",
        )
    deactivate_by_person(
        person=call.person,
        agent=call.row.handle,
        reason=call.reason,
        expected_version=call.version,
        now=call.now,
    )
    return gettext(
        "%(row)s is deactivated; what it issued and its unread mail went to its superior. "
        "Contracts that it worked on stay open."
    ) % {"row": call.row.handle}


def _activate(call: ActRequest) -> Answer:
    given: dict[str, Any] = {
        "caller": call.person,
        "reason": call.reason,
        "expected_version": call.version,
        "now": call.now,
    }
    try:
        activate_agent(handle=call.row.handle, **given)
    except SecondPersonNeeded:
        return waiting_sentence(propose_change(edit=activating(call.row), **given))
    call.row.refresh_from_db(fields=["active"])
    try:
        key = issue_key(agent=call.row, caller=call.person, now=call.now, reason=call.reason)
    except Denied:
        return gettext("%(row)s is active again. A Board member issues it a new key.") % {
            "row": call.row.handle
        }
    return ShownOnce(
        gettext("%(row)s is active again. Its new key") % {"row": call.row.handle}, key, KEY_REMARK
    )


def _effects(agent: Agent, *, active: bool) -> str:
    """What becomes allowed and forbidden, worked out by doing it and rolling it back."""
    change = activate_agent if active else deactivate_agent
    caller = System(name="preview", organisation_id=agent.organisation_id)
    try:
        seen = change(
            handle=agent.handle, caller=caller, now=database_now(), reason="preview", preview=True
        )
    except Denied as refusal:
        return gettext("Not possible: %(sentence)s") % {"sentence": refused_as_text(refusal.deny)}
    allowed = _listed(gettext("Newly allowed:"), "+", seen.difference.allowed)
    forbidden = _listed(gettext("Newly forbidden:"), "-", seen.difference.forbidden)
    return "\n".join([*allowed, *forbidden])


def _listed(title: str, sign: str, facts: Sequence[str]) -> list[str]:
    """The first facts under their title, and how many there are besides; nothing for none."""
    more = len(facts) - SHOWN
    shown = [f"{sign} {fact}" for fact in all_in_language(facts[:SHOWN])]
    rest = [f"{sign} {gettext('and %(more)s more') % {'more': more}}"] if more > 0 else []
    return [title, *shown, *rest] if facts else []


def _policy_version(agent: Agent) -> int:
    return int(agent.organisation.policy_version)


def open_work(agent: Agent) -> list[tuple[str, str]]:
    """What an agent holds now."""
    held = open_contracts_of(agent.id)
    tasks = Task.objects.filter(owner=agent, status__in=UNFINISHED)
    unread = Mail.objects.filter(recipient=agent, read_at=None).order_by()[:COUNTED].count()
    return [
        (gettext("Open contracts that it works on"), str(held.filter(assignee=agent).count())),
        (gettext("Open contracts that it issued"), str(held.filter(issuer=agent).count())),
        (gettext("Unfinished tasks"), str(tasks.count())),
        (gettext("Unread mails"), f"{unread}{'+' if unread == COUNTED else ''}"),
        (gettext("Keys in use"), str(agent.keys.filter(revoked_at=None).count())),
        (gettext("Reports to"), str(agent.reports_to or "board")),
    ]


DEACTIVATE = Act(
    name="deactivate",
    title=_("Deactivate"),
    icon="person_off",
    danger=True,
    deed=Deed.ACTIVATE_AGENT,
    explanation=(
        _(
            "The agent can no longer call, receives no mail and leads no group. Its keys are "
            "revoked; the contracts that it issued and its unread mail go to its superior, its "
            "tasks are free for others. Contracts that it works on stay open until their issuers, "
            "who are told, or the Board cancel them. Its name, mails and events stay."
        )
    ),
    perform=_deactivate,
    possible=lambda agent: bool(agent.active),
    version=_policy_version,
    facts=open_work,
    text=partial(_effects, active=False),
)
ACTIVATE = Act(
    name="activate",
    title=_("Activate again"),
    icon="person_check",
    deed=Deed.ACTIVATE_AGENT,
    explanation=_(
        "The agent takes its place again. Its old keys stay revoked; the next page shows "
        "its new key, once, to a person who may issue keys."
    ),
    perform=_activate,
    possible=lambda agent: not agent.active,
    version=_policy_version,
    facts=open_work,
    text=partial(_effects, active=True),
)


@acts_for.join
def acts_on_agents(model: type[Model]) -> tuple[Act, ...]:
    """What this room adds to the agents' pages."""
    return (DEACTIVATE, ACTIVATE) if model is Agent else ()
