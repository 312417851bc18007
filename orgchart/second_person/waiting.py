"""Which proposed changes wait for a person: those that somebody else proposed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind
from orgchart.difference_words import all_in_language
from orgchart.models import PendingChange
from orgchart.second_person.vocabulary import PendingState


def _proposed(viewer: Viewer) -> QuerySet[Any]:
    rows = PendingChange.objects.seen_by(viewer.organisations)
    open_ones = rows.filter(state=PendingState.PROPOSED).exclude(proposed_by=viewer.username)
    return open_ones.select_related("organisation")


def _show(row: PendingChange) -> Waiting:
    return Waiting(
        title=row.subject,
        asked_by=row.proposed_by,
        since=row.proposed_at,
        detail=row.reason or "; ".join(all_in_language((row.allowed or row.forbidden)[:3])),
    )


KINDS = (
    WaitingKind(
        title=_("Change to confirm"),
        icon="how_to_reg",
        deed=Deed.CONFIRM_CHANGE,
        rows=_proposed,
        since="proposed_at",
        show=_show,
        choices=(
            Choice(_("Confirm"), "confirm"),
            Choice(_("Reject"), "reject", is_danger=True),
        ),
    ),
)
