"""The scheduled jobs of contracts: deadlines, approvals that expire."""

from __future__ import annotations

from datetime import datetime

from contracts.approvals.expiry import expire_approvals
from contracts.deadlines import notify_due
from toolbox.scheduler import scheduled_job


@scheduled_job("deadlines", every=30)
def deadlines(now: datetime) -> int:
    """Remind assignees before a deadline, notify issuers after it."""
    return notify_due(now=now)


@scheduled_job("approvals", every=30)
def approvals(now: datetime) -> int:
    """Cancel deployment approvals that expired unused."""
    return expire_approvals(now=now)
