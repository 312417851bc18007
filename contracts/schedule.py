"""The scheduled jobs of contracts: deadlines, approvals that expire."""

from __future__ import annotations

from datetime import datetime

from contracts.deadlines import tell_due
from contracts.expiry import expire_approvals
from toolbox.scheduler import scheduled_job


@scheduled_job("deadlines", every=30)
def deadlines(now: datetime) -> int:
    """Remind assignees before a deadline, tell issuers after it."""
    return tell_due(now=now)


@scheduled_job("approvals", every=30)
def approvals(now: datetime) -> int:
    """Cancel deployment approvals that expired unused."""
    return expire_approvals(now=now)
