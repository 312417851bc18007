"""The scheduled jobs of the mailroom: unanswered escalations, outgoing notices."""

from __future__ import annotations

from mailroom.escalations.timeouts import sweep_due
from mailroom.outgoing.outbox import send_due
from toolbox.scheduler import scheduled_job

scheduled_job("escalations", every=15)(sweep_due)
scheduled_job("notices", every=5, waits_for_others=True)(send_due)
