"""What of the contracts waits for people: work that the Board ordered, and overdue work."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contracts.models import Contract
from contracts.vocabulary import OPEN_STATES, ContractState
from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind


def _in_review(viewer: Viewer) -> QuerySet[Any]:
    """Submitted work on contracts of the Board."""
    rows = Contract.objects.filter(issuer=None, state=ContractState.REVIEW)
    return viewer.sees(rows).select_related("organisation", "assignee").defer("body")


def _show_review(row: Contract) -> Waiting:
    return Waiting(
        title=row.title,
        asked_by=row.assignee.handle,
        since=row.submitted_at or row.created_at,
        due=row.deadline,
        detail=row.id,
    )


def _overdue(viewer: Viewer) -> QuerySet[Any]:
    """Open contracts past their deadline; what the Board reviews waits for it already."""
    rows = Contract.objects.filter(state__in=OPEN_STATES, deadline__lt=Now())
    rows = rows.exclude(issuer=None, state=ContractState.REVIEW)
    return viewer.sees(rows).select_related("organisation", "assignee").defer("body")


def _show_overdue(row: Contract) -> Waiting:
    return Waiting(
        title=row.title,
        asked_by=f"{row.issuer_name} → {row.assignee.handle}",
        since=row.deadline,
        detail=gettext("%(contract)s is %(state)s")
        % {"contract": row.id, "state": row.get_state_display()},
    )


KINDS = (
    WaitingKind(
        title=_("Contract to review"),
        icon="rate_review",
        deed=Deed.CANCEL_CONTRACT,
        rows=_in_review,
        since="submitted_at",
        show=_show_review,
        choices=(
            Choice(_("Take the work"), "close-passed"),
            Choice(_("Send back"), "close-rework"),
            Choice(_("Refuse"), "close-failed", is_danger=True),
        ),
    ),
    WaitingKind(
        title=_("Overdue contract"),
        icon="event_busy",
        deed=Deed.CANCEL_CONTRACT,
        rows=_overdue,
        since="deadline",
        show=_show_overdue,
        choices=(Choice(_("Cancel"), "close-cancelled", is_danger=True),),
    ),
)
