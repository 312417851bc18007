"""What the Board sees first: each organisation's day in figures, and where the ledger stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from nexus_site.people import counting
from orgchart.models import Organisation
from orgchart.people import desks_of
from toolbox import clock

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
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
    shown: dict[str, Any] = {"now": now, "desks": sorted(desks_of(request.user))}
    if may("orgchart.view_organisation"):
        rows = Organisation.objects.order_by("name")
        days = [day_of(row, now, request) for row in rows[:SHOWN]]
        shown["days"] = sorted(days, key=lambda day: day.is_quiet)
    if may("ledger.view_seal"):
        shown["sealed"] = counting.sealed()
    if may("toolbox.view_clockrun"):
        shown["beat"] = no_beat()
    return shown


def no_beat() -> str:
    """That the clocks stand still; empty while they tick."""
    silent = clock.silence(now=clock.database_now())
    if silent is None:
        return "No beat was ever heard: nothing that falls due is handled"
    if silent >= clock.SILENT:
        return f"No beat was heard for {int(silent)} s: nothing that falls due is handled"
    return ""


def day_of(organisation: Organisation, now: datetime, request: HttpRequest) -> Day:
    """The figures of one organisation that this person may see."""
    may = request.user.has_perm
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    found: dict[str, Any] = {"organisation": organisation}
    active, gone = counting.agents(organisation.id)
    found |= {"agents": active, "deactivated": gone}
    if may("mailroom.view_mail"):
        found["mails"] = counting.mails_since(organisation.id, today)
    if may("ledger.view_event"):
        refusals = counting.refusals_since(organisation.id, today)
        found["refusals"] = refusals[:6]
        found["refused"] = counting.shown(sum(r.count for r in refusals), counting.SCANNED)
        found["changed"] = counting.last_policy_change(organisation.id)
    if may("tasks.view_task"):
        found["tasks"] = counting.open_tasks(organisation.id)
    if may("contracts.view_contract"):
        found["contracts"] = counting.contracts_by_state(organisation.id)
    if may("mailroom.view_escalation"):
        found["escalations"], found["overdue"] = counting.escalations(organisation.id, now)
    if may("mailroom.view_mail") and may("ledger.view_event"):
        found["bars"] = bars(organisation.id, now)
    return Day(**found)


def bars(organisation_id: int, now: datetime) -> list[Bar]:
    """Mails and refusals of the last 24 hours, one bar an hour, oldest first."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    first = hour - timedelta(hours=HOURS - 1)
    mails = counting.mails_by_hour(organisation_id, first)
    refused = counting.refusals_by_hour(organisation_id, first)
    hours = [first + timedelta(hours=n) for n in range(HOURS)]
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
