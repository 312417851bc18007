"""The console's scheduled job: sessions of people that are over."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.sessions.models import Session

from toolbox.scheduler import delete_over, scheduled_job

KEPT = timedelta(days=1)
"""By then each machine, whose clocks decide whether a session still opens a page, calls it over."""


@scheduled_job("sessions of people", every=3600)
def delete_sessions(now: datetime) -> int:
    """Delete sessions that ended a day ago (Spec: people 65): each sign-in leaves one."""
    return delete_over(Session.objects.filter(expire_date__lte=now - KEPT))
