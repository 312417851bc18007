"""The scheduled jobs of contracts: notices about deadlines, approvals that expire."""

from __future__ import annotations

from contracts.approvals.expiry import expire_approvals
from contracts.deadlines import notify_due
from toolbox.scheduler import scheduled_job

scheduled_job("deadlines", every=30)(notify_due)
scheduled_job("approvals", every=30)(expire_approvals)
