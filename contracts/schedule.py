"""What is due in the contracts room: deadlines, approvals that ran out."""

from __future__ import annotations

from datetime import datetime

from contracts.deadlines import tell_due
from contracts.expiry import expire_approvals
from toolbox.scheduler import clock


@clock("deadlines", every=30)
def deadlines(now: datetime) -> int:
    """Remind assignees before a deadline, tell issuers after it."""
    return tell_due(now=now)


@clock("approvals", every=30)
def approvals(now: datetime) -> int:
    """Call off deployment approvals whose time ran out unused."""
    return expire_approvals(now=now)
