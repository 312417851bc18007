"""What waits for people on the first page: paused cases, and agents that violate repeatedly."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from governance.cases.models import Case, Violation
from governance.cases.vocabulary import State

SHOWN = 20
REPEATED = 2
"""Violations of one agent within the window from which the first page names it."""
WINDOW = timedelta(days=30)


def paused_cases() -> list[Case]:
    """The cases that wait for a person, the longest first."""
    rows = Case.objects.filter(state=State.PAUSED).select_related("organisation")
    return list(rows.defer("request").order_by("moved_at")[:SHOWN])


def repeated_violators(now: datetime) -> list[dict[str, Any]]:
    """Agents with several violations in the window, most first."""
    rows = Violation.objects.filter(at__gte=now - WINDOW).order_by()
    counts = rows.values("organisation__name", "agent_name").annotate(count=Count("id"))
    named = counts.filter(count__gte=REPEATED).order_by("-count", "agent_name")[:SHOWN]
    return [dict(each) for each in named]
