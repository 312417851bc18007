"""The console's scheduled job: it deletes old sessions of people."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.sessions.models import Session

from toolbox.scheduler import delete_over, scheduled_job

KEPT = timedelta(days=1)
"""Machines judge a session by their own clocks; after this time all agree that it has ended."""


@scheduled_job("sessions of people", every=3600)
def delete_sessions(now: datetime) -> int:
    """Delete sessions that ended a day ago (Spec: people 65); each sign-in made one."""
    return delete_over(Session.objects.filter(expire_date__lte=now - KEPT))
