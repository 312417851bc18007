"""When the toolbox needs a person: the scheduler stopped."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse

from core.waiting import Alarm, Choice, Waiting
from toolbox import scheduler


def _scheduler(_: datetime) -> Waiting | None:
    problem = scheduler.scheduler_problem(now=scheduler.database_now())
    if not problem:
        return None
    jobs = reverse("admin:toolbox_jobrun_changelist")
    return Waiting(
        title=problem,
        asked_by="scheduler",
        since=None,
        detail="Start the worker and beat: `make up`, or the services that run them",
        address=jobs,
        choices=[Choice("Look at the jobs", jobs)],
    )


KINDS = (
    Alarm(
        title="Scheduler stopped",
        icon="alarm_off",
        permission="toolbox.view_jobrun",
        problem=_scheduler,
    ),
)
