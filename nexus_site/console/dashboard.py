"""The dashboard: each organisation's day in figures, and the state of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from core.people import groups_of
from governance.cases import waiting
from nexus_site.console import counting
from orgchart.models import Organisation
from toolbox import scheduler

HOURS = 24
SHOWN = 20
"""Organisations on the first page; the rest are in their table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One hour of the chart, heights in percent of the busiest."""

    hour: str
    mails: int
    refused: int
    mails_height: int
    refused_height: int


@dataclass(slots=True, kw_only=True)
class DayFigures:
    """One organisation's figures; None where the person may not look."""

    organisation: Organisation
    mails: str | None = None
    agents: int = 0
    deactivated: int = 0
    refusals: Sequence[counting.Refusals] = ()
    refused: str | None = None
    tasks: tuple[str, str] | None = None
    contracts: Sequence[tuple[str, int]] | None = None
    escalations: int | None = None
    overdue: int = 0
    untold: int = 0
    changed: Any = None
    bars: Sequence[Bar] = field(default_factory=tuple)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was written and nothing refused in the last day."""
        return not (self.refusals or any(bar.mails or bar.refused for bar in self.bars))


def figures(request: HttpRequest) -> dict[str, Any]:
    """The dashboard's context: nothing that the person could not open as a table."""
    now = timezone.now()
    may = request.user.has_perm
    shown: dict[str, Any] = {"now": now, "groups": sorted(groups_of(request.user))}
    newest = counting.newest_event()
    if may("orgchart.view_organisation"):
        rows = list(Organisation.objects.order_by("name")[:SHOWN])
        shown["days"] = sorted(days_of(rows, now, newest, may), key=lambda day: day.is_quiet)
    if may("ledger.view_seal"):
        shown["sealed"] = counting.sealed(newest)
    if may("governance.view_case"):
        shown["paused_cases"] = waiting.paused_cases()
        shown["violators"] = waiting.repeated_violators(now)
    if may("toolbox.view_jobrun"):
        shown["scheduler_problem"] = scheduler.scheduler_problem(now=scheduler.database_now())
    return shown


def days_of(
    organisations: Sequence[Organisation], now: datetime, newest: int, may: Callable[[str], bool]
) -> list[DayFigures]:
    """The figures of each organisation that this person may see; all of each kind in one query."""
    ids = [one.id for one in organisations]
    today, first = now.replace(hour=0, minute=0, second=0, microsecond=0), first_hour(now)
    sees = {"mails": may("mailroom.view_mail"), "events": may("ledger.view_event")}
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
        day.tasks, day.contracts = tasks.get(one.id), contracts.get(one.id)
        day.changed = changed.get(one.id)
        if sees["mails"]:
            written = sum(n for hour, n in mails[one.id].items() if hour >= today)
            day.mails = counting.shown(written, counting.SCANNED)
        if sees["events"]:
            tried = [each for each in refused[one.id] if each.at >= today]
            day.refusals = counting.refusals_by_code(tried)[:6]
            day.refused = counting.shown(len(tried), counting.SCANNED)
        if all(sees.values()):
            day.bars = bars(mails[one.id], counting.refusals_by_hour(refused[one.id]), now)
        if asked:
            day.escalations, day.overdue, day.untold = waiting.get(one.id, (0, 0, 0))
        days.append(day)
    return days


def first_hour(now: datetime) -> datetime:
    """The beginning of the chart."""
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def bars(
    mails: Mapping[datetime, int], refused: Mapping[datetime, int], now: datetime
) -> list[Bar]:
    """Mails and refusals of the last 24 hours, one bar an hour, oldest first."""
    hours = [first_hour(now) + timedelta(hours=n) for n in range(HOURS)]
    most = max([1, *(mails.get(h, 0) + refused.get(h, 0) for h in hours)])
    return [
        Bar(
            hour=f"{h:%H:%M}",
            mails=mails.get(h, 0),
            refused=refused.get(h, 0),
            mails_height=round(100 * mails.get(h, 0) / most),
            refused_height=round(100 * refused.get(h, 0) / most),
        )
        for h in hours
    ]
