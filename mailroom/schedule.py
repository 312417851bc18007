"""The scheduled jobs of the mailroom: unanswered escalations, outgoing notices."""

from __future__ import annotations

from datetime import datetime

from mailroom.escalations import timeouts as unanswered
from mailroom.outgoing import outbox
from toolbox.scheduler import scheduled_job


@scheduled_job("escalations", every=15)
def escalations(now: datetime) -> int:
    """Time out escalations; notify the sender, the CEO and the Board.

    Spec: escalation 11, escalation 12.
    """
    return unanswered.sweep_due(now=now)


@scheduled_job("notices", every=5)
def notices(now: datetime) -> int:
    """Send notices that are due, and those whose last attempt failed long enough ago."""
    return outbox.send_due(now=now)
