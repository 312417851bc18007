"""The workspace's scheduled jobs: deployments left open, repositories to push back, old counts."""

from __future__ import annotations

from datetime import datetime, timedelta

from toolbox.scheduler import scheduled_job
from workspace.builds.deployments import settle_interrupted
from workspace.git.garbage import collect_garbage
from workspace.git.pushing_back import push_back_due
from workspace.models import WebUse

KEPT = timedelta(days=2)


@scheduled_job("repositories", every=60)
def push_repositories_back(now: datetime) -> int:
    """Push main branches back after a merge, where the organisation's setting says so."""
    return push_back_due(now=now)


@scheduled_job("git garbage", every=86400)
def git_garbage(now: datetime) -> int:
    """Forget drafts of contracts that ended, and pack the repositories."""
    return collect_garbage(now=now)


@scheduled_job("deployments", every=30)
def deployments(now: datetime) -> int:
    """Settle deployments that no process saw the end of."""
    return settle_interrupted(now=now)


@scheduled_job("web use", every=3600)
def web_use(now: datetime) -> int:
    """Delete counts of past days."""
    return WebUse.objects.filter(day__lt=(now - KEPT).date()).delete()[0]
