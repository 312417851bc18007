"""The scheduled job of governance: files of the organisation that are missing or out of date."""

from __future__ import annotations

from datetime import datetime

from governance.staff.org_files import refresh_org_files
from toolbox.scheduler import scheduled_job


@scheduled_job("charts", every=300, waits_for_others=True)
def rewrite_org_files(now: datetime) -> int:
    """Write company/org.yaml and company/chain-of-command.yaml where missing or out of date."""
    return refresh_org_files()
