"""When the toolbox needs a person: the scheduler stopped."""

from __future__ import annotations

from datetime import datetime

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core.labels import Text
from core.waiting import Alarm, Choice, Waiting
from toolbox import scheduler


def stopped_scheduler(*, now: datetime) -> Text:
    """What `scheduler_problem` says, in the language of the page; empty while it runs."""
    if not scheduler.scheduler_problem(now=now):
        return ""
    seconds = scheduler.seconds_since_last_run(now=now)
    if seconds is None:
        return _("The scheduler is not running; timeouts are not processed (no job has run yet)")
    stopped = _(
        "The scheduler is not running; timeouts are not processed (last run {seconds} s ago)"
    )
    return format_lazy(stopped, seconds=int(seconds))


def _scheduler(now: datetime) -> Waiting | None:
    problem = stopped_scheduler(now=now)
    if not problem:
        return None
    return Waiting(
        title=problem,
        asked_by=_("scheduler"),
        since=None,
        detail=_("Start the worker and beat: `make up`, or the services that run them"),
    )


KINDS = (
    Alarm(
        title=_("Scheduler stopped"),
        icon="alarm_off",
        permission="toolbox.view_jobrun",
        problem=_scheduler,
        choice=Choice(_("Look at the jobs"), "admin:toolbox_jobrun_changelist"),
    ),
)
