"""What of the cases needs people: paused cases, and agents that violate repeatedly."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind
from governance.cases.models import Case
from governance.cases.vocabulary import State
from orgchart.models import Organisation

SHOWN = 20
REPEATED = 2
"""Violations of one agent within the window from which the first page names it."""
COUNTED = 100
"""The newest violations of an agent that are counted; the page says that there may be more."""
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


# By index from agent to agent: one of them may violate a million times. `BETWEEN` keeps PostgreSQL
# from looking for an agent's rows among all, from the newest on.
OF_EACH_AGENT = """
WITH RECURSIVE whose AS (
    SELECT organisation, (
        SELECT min(agent_id) FROM governance_violation WHERE organisation_id = organisation
    ) AS agent
    FROM unnest(%(organisations)s::bigint[]) AS organisation
    UNION ALL
    SELECT organisation, (
        SELECT min(agent_id) FROM governance_violation
        WHERE organisation_id = organisation AND agent_id > agent
    )
    FROM whose WHERE agent IS NOT NULL
)
SELECT o.name, recent.agent_name, recent.count
FROM whose JOIN orgchart_organisation o ON o.id = organisation CROSS JOIN LATERAL (
    SELECT max(agent_name), count(*) FROM (
        SELECT agent_name, at FROM governance_violation
        WHERE organisation_id = organisation AND agent_id BETWEEN agent AND agent
        ORDER BY agent_id, id DESC LIMIT %(counted)s
    ) AS newest WHERE at >= %(since)s
) AS recent(agent_name, count)
WHERE recent.count >= %(repeated)s
ORDER BY recent.count DESC, recent.agent_name LIMIT %(shown)s
"""


def repeated_violators(
    organisations: QuerySet[Organisation], now: datetime
) -> list[dict[str, Any]]:
    """Agents with several violations in the window, most first; COUNTED of each are counted."""
    values: dict[str, Any] = {
        "organisations": list(organisations.order_by().values_list("id", flat=True)),
        "since": now - WINDOW,
        "counted": COUNTED,
        "repeated": REPEATED,
        "shown": SHOWN,
    }
    with connection.cursor() as cursor:
        cursor.execute(OF_EACH_AGENT, values)
        rows = cursor.fetchall()
    return [
        {"organisation": name, "agent": agent, "count": f"{count}+" if count == COUNTED else count}
        for name, agent, count in rows
    ]
