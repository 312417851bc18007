"""What the page of an agent shows: bounded lists, each with a link to the whole of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, pgettext

from contracts.models import Contract
from core.admin.actors import actor_shown
from core.admin.refused import said_as_text
from core.waiting import page_of
from ledger.models import Event
from mailroom.models import Mail
from nexus_site.company.agent_rights import rights_of
from nexus_site.company.state import states_of
from nexus_site.console import counting
from orgchart.admin.agent_page import about_agent
from orgchart.admin.placing import rights_of_agent
from orgchart.models import Agent, ApiKey
from orgchart.policy_cache import current_policy
from tasks.models import Task
from toolbox.frames.vocabulary import UNENDED
from toolbox.models import Frame, Session
from toolbox.sessions import effective_session

MOST = 5
"""Rows of one list."""
MOST_EVENTS = 15
LOOKED_AT = counting.SCANNED
"""The newest events of the installation that the page looks through; the ledger has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a list: what it is, where it is, its state and its time.

    A tag that is a code is shown as it is written.
    """

    title: str
    address: str
    at: datetime
    tag: str = ""
    is_code: bool = False
    tone: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One bounded list, the address of the whole of it, and what an empty one says."""

    id: str
    title: str
    address: str
    rows: Sequence[Row]
    empty: str


rights_of_agent.join(rights_of)


@about_agent.join
def what_it_does(request: HttpRequest, agent: Agent) -> dict[str, Any]:
    """The whole page of an agent, as far as this person may look."""
    policy = current_policy(agent.organisation_id)
    party = policy.agents[agent.handle]
    standing = Session.objects.filter(agent=agent, standing=True).first()
    may_read = request.user.has_perm("contracts.view_contract")
    states = states_of(agent.organisation_id, agent.id, with_titles=may_read)
    return {
        "policy": policy,
        "party": party,
        "role": policy.roles[party.role],
        "role_page": reverse("admin:orgchart_role_change", args=[agent.role_id]),
        "superior_page": page_of(agent.reports_to) if agent.reports_to else "",
        "state": states[agent.handle],
        "mode": effective_session(standing, policy).mode if standing else "chat_safe",
        "has_called": standing is not None,
        "rights": rights_of(policy, party),
        "lists": list(_lists(request, agent)),
        "timeline": _timeline(request, agent),
        "timeline_page": _ledger(agent, q=agent.handle),
    }


def _lists(request: HttpRequest, agent: Agent) -> Iterator[Listed]:
    """The lists that this person may open."""
    for permission, make in (
        ("contracts.view_contract", _contracts),
        ("mailroom.view_mail", _mails),
        ("tasks.view_task", _tasks),
        ("ledger.view_event", _refusals),
        ("toolbox.view_frame", _frames),
        ("orgchart.view_apikey", _keys),
        ("toolbox.view_session", _sessions),
    ):
        if request.user.has_perm(permission):
            yield make(agent)


def _contracts(agent: Agent) -> Listed:
    rows = Contract.objects.filter(Q(assignee=agent) | Q(issuer=agent))
    return Listed(
        id="contracts",
        title=gettext("Contracts"),
        address=_table("contracts_contract", assignee__id__exact=agent.id),
        empty=gettext("It works under no contract. Its superior issues one."),
        rows=[
            Row(
                title=row.title,
                address=page_of(row),
                at=row.created_at,
                tag=str(row.get_state_display()),
                detail=gettext("for %(agent)s") % {"agent": row.issuer_name}
                if row.assignee_id == agent.id
                else gettext("issued to %(agent)s") % {"agent": row.assignee},
            )
            for row in rows.select_related("assignee").order_by("-id")[:MOST]
        ],
    )


def _mails(agent: Agent) -> Listed:
    columns = ("id", "subject", "from_agent", "to_agent", "mail_type", "read_at", "created_at")
    rows: Iterable[Mail] = (
        _newest(Mail.objects.filter(recipient=agent).only(*columns))
        .union(_newest(Mail.objects.filter(sender=agent).only(*columns)))
        .order_by("-id")[:MOST]
    )
    return Listed(
        id="mail",
        title=gettext("Mail"),
        address=_table("mailroom_mail", q=agent.handle),
        empty=gettext("It sent no mail and got none."),
        rows=[
            Row(
                title=row.subject,
                address=page_of(row),
                at=row.created_at,
                tag=row.mail_type,
                is_code=True,
                tone="" if row.read_at or row.from_agent == agent.handle else "wait",
                detail=pgettext("mail", "to %(agent)s") % {"agent": row.to_agent}
                if row.from_agent == agent.handle
                else (
                    gettext("from %(agent)s") if row.read_at else gettext("from %(agent)s, unread")
                )
                % {"agent": row.from_agent},
            )
            for row in rows
        ],
    )


def _newest(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.order_by("-id")[:MOST]


def _tasks(agent: Agent) -> Listed:
    rows = Task.objects.filter(organisation=agent.organisation_id, owner=agent)
    return Listed(
        id="tasks",
        title=gettext("Tasks"),
        address=_table("tasks_task", owner__id__exact=agent.id),
        empty=gettext("It owns no task. It takes one with task_update, or a lead assigns one."),
        rows=[
            Row(
                title=row.subject,
                address=page_of(row),
                at=row.updated_at,
                tag=str(row.status),
                detail=gettext("task %(number)s") % {"number": row.number},
            )
            for row in rows.order_by("-number")[:MOST]
        ],
    )


def _frames(agent: Agent) -> Listed:
    rows = Frame.objects.filter(
        Q(assignee=agent) | Q(opener=agent), organisation=agent.organisation_id, state__in=UNENDED
    )
    return Listed(
        id="frames",
        title=gettext("Delegated work"),
        address=_table("toolbox_frame", assignee__id__exact=agent.id),
        empty=gettext("It works on nothing that another agent delegated, and waits for no result."),
        rows=[
            Row(
                title=row.name or row.instruction[:80],
                address=page_of(row),
                at=row.opened_at,
                tag=str(row.state),
                detail=gettext("from %(agent)s") % {"agent": row.opener}
                if row.assignee_id == agent.id
                else gettext("delegated to %(agent)s") % {"agent": row.assignee},
            )
            for row in rows.select_related("opener", "assignee").order_by("-id")[:MOST]
        ],
    )


def _keys(agent: Agent) -> Listed:
    rows = ApiKey.objects.filter(agent=agent).order_by("revoked_at", "-id")
    return Listed(
        id="keys",
        title=gettext("Keys"),
        address=_table("orgchart_apikey", agent__id__exact=agent.id),
        empty=gettext("It has no key, so its program cannot call. Issue one."),
        rows=[
            Row(
                title=f"{row.prefix}…",
                address=page_of(row),
                at=row.created_at,
                tag=gettext("revoked") if row.revoked_at else gettext("valid"),
                tone="deny" if row.revoked_at else "allow",
                detail=format_html(
                    gettext("by %(who)s") % {"who": "{}"}, actor_shown(row.created_by)
                ),
            )
            for row in rows[:MOST]
        ],
    )


def _sessions(agent: Agent) -> Listed:
    rows = Session.objects.filter(agent=agent).order_by("-standing", "-opened_at")
    return Listed(
        id="sessions",
        title=gettext("Sessions"),
        address=_table("toolbox_session", agent__id__exact=agent.id),
        empty=gettext("It never called."),
        rows=[
            Row(
                title=gettext("Standing session")
                if row.standing
                else gettext("Session %(id)s") % {"id": str(row.id)[:8]},
                address=page_of(row),
                at=row.opened_at,
                tag=row.mode,
                detail=row.contract_ref,
            )
            for row in rows[:MOST]
        ],
    )


def _recent(agent: Agent) -> QuerySet[Event]:
    """The newest events of its organisation, newest first."""
    newest = Event.objects.order_by("-seq").values("seq")[:1]
    rows = Event.objects.filter(
        organisation_id=agent.organisation_id, seq__gt=Subquery(newest) - LOOKED_AT
    )
    return rows.defer("digest", "details").order_by("-seq")


def _refusals(agent: Agent) -> Listed:
    rows = _recent(agent).filter(actor=f"agent:{agent.handle}", decision="deny")
    return Listed(
        id="refusals",
        title=gettext("Blocked actions"),
        address=_ledger(agent, decision__exact="deny", actor=f"agent:{agent.handle}"),
        empty=gettext("None of its recent calls was refused."),
        rows=[
            Row(
                title=said_as_text(row.reason) or row.code,
                address=page_of(row),
                at=row.at,
                tag=row.code,
                tone="deny",
                detail=f"{row.tool} · {row.code}" if row.tool else row.code,
            )
            for row in rows[:MOST]
        ],
    )


def _timeline(request: HttpRequest, agent: Agent) -> list[Event] | None:
    """What it did and what was done to it, newest first; None where the person may not look."""
    if not request.user.has_perm("ledger.view_event"):
        return None
    its = Q(actor=f"agent:{agent.handle}") | Q(subject=f"agent:{agent.handle}")
    return list(_recent(agent).filter(its)[:MOST_EVENTS])


def _table(name: str, **filters: Any) -> str:
    return f"{reverse(f'admin:{name}_changelist')}?{urlencode(filters)}"


def _ledger(agent: Agent, **filters: Any) -> str:
    return _table("ledger_event", organisation=agent.organisation_id, **filters)
