"""What is due in the tasks room: claims that ran out."""

from __future__ import annotations

from datetime import datetime

from tasks.leases import release_overdue
from toolbox.scheduler import clock


@clock("leases", every=5)
def leases(now: datetime) -> int:
    """Free the tasks whose claims ran out, and those of agents who have left."""
    return release_overdue(now=now)
