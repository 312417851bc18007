"""Which proposed changes wait for a person: those that somebody else proposed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from core.deeds import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind, page_of
from orgchart.models import PendingChange
from orgchart.pending.vocabulary import PendingState


def _proposed(viewer: Viewer) -> QuerySet[Any]:
    rows = PendingChange.objects.filter(state=PendingState.PROPOSED)
    return viewer.sees(rows.exclude(proposed_by=viewer.username)).select_related("organisation")


def _show(row: PendingChange) -> Waiting:
    return Waiting(
        title=row.subject,
        asked_by=row.proposed_by,
        since=row.proposed_at,
        organisation=row.organisation.name,
        detail=row.reason,
        address=page_of(row),
        choices=[
            Choice("Confirm", page_of(row, "confirm")),
            Choice("Reject", page_of(row, "reject"), is_danger=True),
        ],
    )


KINDS = (
    WaitingKind(
        title="Change to confirm",
        icon="how_to_reg",
        deed=Deed.CONFIRM_CHANGE,
        rows=_proposed,
        since="proposed_at",
        show=_show,
    ),
)
