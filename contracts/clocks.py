"""What is due in the contracts room: deadlines."""

from __future__ import annotations

from datetime import datetime

from contracts.deadlines import tell_due
from toolbox.clock import clock


@clock("deadlines", every=30)
def deadlines(now: datetime) -> int:
    """Remind assignees before a deadline, tell issuers after it."""
    return tell_due(now=now)
