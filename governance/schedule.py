"""What is due in governance: files that no longer say what the organisation is."""

from __future__ import annotations

from datetime import datetime

from governance.staff.projections import refresh_charts
from toolbox.scheduler import clock


@clock("charts", every=300)
def charts(now: datetime) -> int:
    """Write company/org.yaml and company/chain-of-command.yaml where they are missing or behind."""
    return refresh_charts()
