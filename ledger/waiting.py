"""When the ledger needs a person: events that are not sealed in time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.urls import reverse

from core.waiting import Alarm, Choice, Waiting
from ledger.sealer import read_backlog


def _sealing(now: datetime) -> Waiting | None:
    backlog = read_backlog(now=now)
    if backlog is None or not backlog.is_late:
        return None
    seals = reverse("admin:ledger_seal_changelist")
    return Waiting(
        title=f"Event {backlog.seq} and those after it are not sealed",
        asked_by="ledger",
        since=now - timedelta(seconds=backlog.seconds),
        detail=f"held back by {backlog.holder}" if backlog.holder else "the sealer does not run",
        address=seals,
        choices=[Choice("Look at the seals", seals)],
    )


KINDS = (
    Alarm(
        title="Ledger not sealed",
        icon="gpp_maybe",
        permission="ledger.view_seal",
        problem=_sealing,
    ),
)
