"""What of the cases needs people: paused cases, and agents that violate repeatedly."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind
from governance.cases.models import Case, Violation
from governance.cases.vocabulary import State
from orgchart.models import Organisation

SHOWN = 20
REPEATED = 2
"""Violations of one agent within the window from which the first page names it."""
WINDOW = timedelta(days=30)


def _paused(viewer: Viewer) -> QuerySet[Any]:
    rows = Case.objects.filter(state=State.PAUSED)
    return viewer.sees(rows).select_related("organisation").defer("request")


def _show(row: Case) -> Waiting:
    return Waiting(
        title=row.title,
        asked_by=row.opened_by_name,
        since=row.moved_at,
        detail=gettext("%(case)s paused by %(signal)s") % {"case": row.id, "signal": row.paused_by},
    )


KINDS = (
    WaitingKind(
        title=_("Paused case"),
        icon="gavel",
        deed=Deed.AMEND_CASE,
        rows=_paused,
        since="moved_at",
        show=_show,
        choices=(Choice(_("Look and decide"), "change"),),
    ),
)


def repeated_violators(
    organisations: QuerySet[Organisation], now: datetime
) -> list[dict[str, Any]]:
    """Agents with several violations in the window, most first."""
    rows = Violation.objects.filter(at__gte=now - WINDOW, organisation__in=organisations)
    rows = rows.order_by()
    counts = rows.values("organisation__name", "agent_name").annotate(count=Count("id"))
    named = counts.filter(count__gte=REPEATED).order_by("-count", "agent_name")[:SHOWN]
    return [dict(each) for each in named]
