"""The workspace's scheduled jobs: deployments left open, repositories to push back, old counts."""

from __future__ import annotations

from datetime import datetime, timedelta

from toolbox.scheduler import delete_over, scheduled_job
from workspace.builds.deployments import settle_interrupted
from workspace.git.garbage import collect_garbage
from workspace.git.pushing_back import push_back_due
from workspace.models import WebUse

KEPT = timedelta(days=2)

scheduled_job("repositories", every=60, waits_for_others=True)(push_back_due)
scheduled_job("git garbage", every=300, waits_for_others=True)(collect_garbage)
scheduled_job("deployments", every=30, waits_for_others=True)(settle_interrupted)


@scheduled_job("web use", every=3600)
def web_use(now: datetime) -> int:
    """Delete counts of past days."""
    return delete_over(WebUse.objects.filter(day__lt=(now - KEPT).date()))
