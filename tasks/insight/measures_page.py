"""The measures of an organisation's tasks over a period, as figures and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.charts import Chart, Series, count_chart
from core.admin.units import rough_duration
from core.database import database_now
from core.labels import Text
from orgchart.admin.choosing import choose_organisation
from orgchart.models import Organisation
from tasks.insight.charts import rate_chart
from tasks.insight.figures import Counts, Figure, figures_of
from tasks.insight.measures import By, Duration, count_tasks, durations
from tasks.pages.common import page_context

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
MAX_MEASURED = 20_000
"""Durations cover at most that many tasks of the period, the last ones completed."""
LINES = 20
"""Types, roles or agents in a table: those that completed most."""


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time up to now that a person can choose; one of `every` steps has a label."""

    name: str
    title: Text
    step: timedelta
    steps: int
    every: int

    def begin(self, now: datetime) -> datetime:
        """The start of its first hour or day, in UTC; its last one is not over yet."""
        now = now.astimezone(UTC)
        last = now.replace(minute=0, second=0, microsecond=0)
        if self.step == DAY:
            last = last.replace(hour=0)
        return last - (self.steps - 1) * self.step

    def label(self, at: datetime) -> str:
        """What a stretch of it is called."""
        return f"{at:%H:%M}" if self.step == HOUR else f"{at:%m-%d}"


PERIODS = (
    Period("1", _("24 hours"), HOUR, 24, 4),
    Period("7", _("7 days"), DAY, 7, 1),
    Period("30", _("30 days"), DAY, 30, 5),
    Period("90", _("90 days"), DAY, 90, 15),
)
USUAL = PERIODS[1]
GROUPS = {By.TYPE: _("type"), By.ROLE: _("role"), By.AGENT: _("agent")}


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure: its figure over the whole period, and a bar for each stretch of it."""

    figure: Figure
    chart: Chart

    @property
    def value(self) -> str:
        """The figure as people read it."""
        if self.figure.value is None:
            return "–"
        return f"{self.figure.value:.1f} %" if self.figure.whole is not None else str(
            self.figure.part
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DurationLine:
    """One line of a table of durations in words; `share` in percent of the longest median."""

    name: str
    count: int
    mean: str
    median: str
    waited: str
    share: int


def measures_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The measures, for people who may see tasks."""
    organisation, context = page_context(model_admin, request, gettext("Task measures"))
    if organisation is None:
        return choose_organisation(request, context)
    asked = request.GET.get("days", "")
    period = next((one for one in PERIODS if one.name == asked), USUAL)
    context |= {"period": period, "periods": PERIODS}
    context |= figures(organisation, period, database_now())
    return TemplateResponse(request, "admin/nexus/task_measures.html", context)


def figures(organisation: Organisation, period: Period, now: datetime) -> dict[str, Any]:
    """What the page shows of one organisation and one period. Five queries."""
    since = period.begin(now)
    counts = count_tasks(organisation.id, since=since, until=now, step=period.step)
    starts = [since + place * period.step for place in range(len(counts))]
    labels = [period.label(at) for at in starts]
    created, started, completed = (
        [getattr(one, name) for one in counts] for name in ("created", "started", "completed")
    )
    taken = {
        by.value: durations(organisation.id, by, since=since, until=now, most=MAX_MEASURED)
        for by in By
    }
    return {
        "since": since,
        "until": now,
        "measured": _measured(labels, counts),
        "flow": count_chart(
            labels,
            [
                Series(_created, "tc-created", created),
                Series(_started, "tc-started", started),
                Series(_completed, "tc-completed", completed),
            ],
        ),
        "ticks": labels[:: period.every],
        "centred": period.every == 1,
        "numbers": list(zip(labels, counts, strict=True))[::-1],
        "durations": [(by, GROUPS[By(by)], _lines(found)) for by, found in taken.items()],
        "newest": MAX_MEASURED if sum(one.count for one in taken[By.TYPE]) == MAX_MEASURED else 0,
    }


def _measured(labels: Sequence[str], counts: Sequence[Counts]) -> list[Measured]:
    stretches = zip(*(figures_of(stretch) for stretch in counts), strict=True)
    totals = figures_of(sum(counts, Counts()))
    return [
        Measured(total, rate_chart(labels, figures))
        for total, figures in zip(totals, stretches, strict=True)
    ]


def _created(count: int) -> str:
    return gettext("%(count)s created") % {"count": count}


def _started(count: int) -> str:
    return gettext("%(count)s started") % {"count": count}


def _completed(count: int) -> str:
    return gettext("%(count)s completed") % {"count": count}


def _lines(found: Sequence[Duration]) -> list[DurationLine]:
    most = sorted(found, key=lambda one: (-one.count, one.name))[:LINES]
    longest = max((one.median for one in most), default=0) or 1
    return [
        DurationLine(
            name=gettext("none") if one.name == "none" else one.name,
            count=one.count,
            mean=rough_duration(one.mean),
            median=rough_duration(one.median),
            waited="–" if one.waited is None else rough_duration(one.waited),
            share=round(100 * one.median / longest),
        )
        for one in most
    ]
