"""The state of each organisation on the first page: its day in figures, every one a link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import (
    Case,
    Count,
    F,
    IntegerField,
    OuterRef,
    QuerySet,
    Value,
    When,
    Window,
)
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from core.admin.charts import Chart, Series, count_chart
from core.database import database_now
from core.people import Organisations, signed_in
from core.waiting import Turn
from governance.cases import waiting
from mailroom.models import Mail
from nexus_site.console import counting
from orgchart.admin.pausing import own_pause, pause_number
from orgchart.models import Organisation
from orgchart.people.members import visible_organisations

SEES_MAIL = "mailroom.view_mail"
HOURS = 24
STEP = 2
"""Hours of one bar."""
SHOWN = 4
"""Organisations on the first page, whatever their number; the rest are in their table."""
RECENT = 500
"""The newest mails say which organisations are busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChart:
    """One chart of a day: what its bars count together, and the ends of its axis."""

    title: str
    total: int
    chart: Chart
    ticks: tuple[str, str]


@dataclass(slots=True, kw_only=True)
class DayFigures:
    """One organisation's figures; None where the person may not look."""

    organisation: Organisation
    mails: str | None = None
    agents: int = 0
    deactivated: int = 0
    refusals: Sequence[counting.RefusalsOfCode] = ()
    refused: str | None = None
    tasks: tuple[str, str] | None = None
    task_states: Sequence[tuple[str, str]] = ()
    refusing: Sequence[counting.RefusedActor] = ()
    contracts: Sequence[tuple[str, str]] | None = None
    escalations: int | None = None
    overdue: int = 0
    untold: int = 0
    changed: Any = None
    charts: Sequence[DayChart] = field(default_factory=tuple)

    @property
    def is_stopped(self) -> bool:
        """Whether every agent of it is stopped."""
        return pause_number(self.organisation) is not None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was written and nothing refused in the last day."""
        return not (self.refusals or any(one.total for one in self.charts))


def figures(request: HttpRequest, turns: Sequence[Turn]) -> dict[str, Any]:
    """The context of these figures: nothing that the person could not open as a table.

    `turns` are the decisions that wait: their organisations are shown first.
    """
    now = database_now()
    may, who = request.user.has_perm, signed_in(request)
    mine = visible_organisations(who)
    shown: dict[str, Any] = {"now": now, "groups": sorted(who.groups)}
    newest = counting.newest_event()
    if may("orgchart.view_organisation"):
        rows = shown_first(mine, turns, _busy(who.organisations) if may(SEES_MAIL) else ())
        shown["days"] = days_of(rows, now, newest, may)
        shown["organisations"] = rows[0].counted if rows else 0  # type: ignore[attr-defined]
    if may("ledger.view_seal") and who.is_member_of(None):
        shown |= {"sees_seals": True, "sealed": counting.sealed(newest)}
    if may("governance.view_case"):
        shown["violators"] = waiting.repeated_violators(mine, now)
    return shown


def shown_first(
    mine: QuerySet[Organisation], turns: Sequence[Turn], busy: Sequence[int]
) -> list[Organisation]:
    """The organisations on the first page, with the number of all as `counted`.

    Those where a decision waits longest, then those that are stopped, then the busy ones.
    """
    pause = own_pause(organisation=OuterRef("pk"), agent=None)
    waits = dict.fromkeys(turn.organisation.id for turn in turns if turn.organisation)
    rows = mine.annotate(own_pause=pause, counted=Window(Count("pk")))
    order = (_rank([*waits]), F("own_pause").asc(nulls_last=True), _rank(busy), "name", "pk")
    return list(rows.order_by(*order)[:SHOWN])


def _rank(ids: Sequence[int]) -> Case:
    """The place of a row's id among these; behind them where it is none of them."""
    places = [When(pk=key, then=Value(place)) for place, key in enumerate(ids)]
    return Case(*places, default=Value(len(ids)), output_field=IntegerField())


def _busy(organisations: Organisations) -> Sequence[int]:
    """The organisations of the newest mails, the busiest first."""
    rows = Mail.objects.order_by("-id").values_list("organisation_id", flat=True)
    if organisations is not None:
        rows = rows.filter(organisation_id__in=organisations)
    return [key for key, _ in Counter(rows[:RECENT]).most_common(SHOWN)]


def days_of(
    organisations: Sequence[Organisation], now: datetime, newest: int, may: Callable[[str], bool]
) -> list[DayFigures]:
    """The figures of each organisation that this person may see; all of each kind in one query."""
    ids = [one.id for one in organisations]
    today, first = now.replace(hour=0, minute=0, second=0, microsecond=0), first_hour(now)
    sees = {"mails": may(SEES_MAIL), "events": may("ledger.view_event")}
    agents = counting.agents(ids)
    mails = counting.mails_by_hour(ids, first) if sees["mails"] else {}
    refused = counting.refusals(ids, first, newest) if sees["events"] else {}
    changed = counting.last_policy_changes(ids) if sees["events"] else {}
    tasks = counting.open_tasks(ids) if may("tasks.view_task") else {}
    contracts = counting.contracts_by_state(ids) if may("contracts.view_contract") else {}
    asked = may("mailroom.view_escalation")
    waiting = counting.escalations(ids, now) if asked else {}
    days = []
    for one in organisations:
        active, gone = agents.get(one.id, (0, 0))
        day = DayFigures(organisation=one, agents=active, deactivated=gone)
        day.contracts = contracts.get(one.id)
        if one.id in tasks:
            found = tasks[one.id]
            day.tasks, day.task_states = (found.open, found.free), found.states
        day.changed = changed.get(one.id)
        if sees["mails"]:
            written = sum(n for hour, n in mails[one.id].items() if hour >= today)
            day.mails = counting.shown(written, counting.SCANNED)
        if sees["events"]:
            _count_refusals(day, [each for each in refused[one.id] if each.at >= today])
        if all(sees.values()):
            day.charts = charts(one, mails[one.id], counting.refusals_by_hour(refused[one.id]), now)
        if asked:
            day.escalations, day.overdue, day.untold = waiting.get(one.id, (0, 0, 0))
        days.append(day)
    return days


def _count_refusals(day: DayFigures, tried: Sequence[counting.RefusalCount]) -> None:
    day.refusals = counting.refusals_by_code(tried)[:6]
    day.refusing = counting.refusals_by_actor(tried)[:6]
    day.refused = counting.shown(len(tried), counting.SCANNED)


def first_hour(now: datetime) -> datetime:
    """The beginning of the charts: bars begin at even hours."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    return hour - timedelta(hours=HOURS - STEP + hour.hour % STEP)


def charts(
    organisation: Organisation,
    mails: Mapping[datetime, int],
    refused: Mapping[datetime, int],
    now: datetime,
) -> list[DayChart]:
    """Mails and refusals of the last 24 hours, oldest first; each bar leads to its list."""
    begins = [first_hour(now) + n * timedelta(hours=1) for n in range(0, HOURS, STEP)]
    times = [_times(begin, begin + timedelta(hours=STEP)) for begin in begins]
    ours = {"organisation__id__exact": organisation.pk}
    sent = Series(
        words=_mails,
        look="nx-mails",
        counts=[_counted(mails, begin) for begin in begins],
        links=_links("mailroom_mail", "created_at", begins, ours),
    )
    denied = {"organisation": organisation.pk, "decision__exact": "deny"}
    blocked = Series(
        words=_refusals,
        look="nx-refused",
        counts=[_counted(refused, begin) for begin in begins],
        links=_links("ledger_event", "at", begins, denied),
    )
    titles = (gettext("Mails, last 24 hours"), gettext("Blocked actions, last 24 hours"))
    return [
        DayChart(
            title=title,
            total=sum(one.counts),
            chart=count_chart(times, [one]),
            ticks=(f"{begins[0]:%H:%M}", gettext("now, UTC")),
        )
        for title, one in zip(titles, (sent, blocked), strict=True)
    ]


def _times(since: datetime, until: datetime) -> str:
    """Two hours as people read them."""
    times = {"since": f"{since:%H:%M}", "until": f"{until:%H:%M}"}
    return gettext("%(since)s to %(until)s UTC") % times


def _counted(counts: Mapping[datetime, int], begin: datetime) -> int:
    return sum(counts.get(begin + n * timedelta(hours=1), 0) for n in range(STEP))


def _links(
    table: str, column: str, begins: Sequence[datetime], filters: Mapping[str, object]
) -> list[str]:
    """The rows behind each bar: a list with its filter by time."""
    address = reverse(f"admin:{table}_changelist")
    links = []
    for begin in begins:
        query = dict(filters)
        for edge, at in (("from", begin), ("to", begin + timedelta(hours=STEP))):
            query |= {
                f"{column}_{edge}_0": f"{at:%Y-%m-%d}",
                f"{column}_{edge}_1": f"{at:%H:%M:%S}",
            }
        links.append(f"{address}?{urlencode(query)}")
    return links


def _mails(count: int) -> str:
    return ngettext("%(count)s mail", "%(count)s mails", count) % {"count": count}


def _refusals(count: int) -> str:
    return ngettext("%(count)s refusal", "%(count)s refusals", count) % {"count": count}
