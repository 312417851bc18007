"""The scheduled job of tasks: claims that expire."""

from __future__ import annotations

from datetime import datetime

from tasks.leases import release_overdue
from toolbox.scheduler import scheduled_job


@scheduled_job("leases", every=5)
def leases(now: datetime) -> int:
    """Release tasks whose claims expired, and those of agents who have left."""
    return release_overdue(now=now)
