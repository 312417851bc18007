"""The Celery task that runs a scheduled job."""

import threading
from collections import defaultdict

from celery import shared_task

from core.database import database_now
from toolbox import scheduler

RUNNING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Held while this process runs a job."""


@shared_task(name="toolbox.run_job", ignore_result=True)  # type: ignore[untyped-decorator]
def run_job(name: str) -> int:
    """Run a scheduled job; duplicate and late messages are harmless and cost one query.

    Only one thread of a process runs a job at a time: a slow job, such as notices to a slow
    receiver, would otherwise occupy every thread, and no other job would run.
    """
    if not RUNNING[name].acquire(blocking=False):
        return 0
    try:
        if scheduler.has_run_recently(name, now=database_now()):
            return 0
        return scheduler.run_job(name)
    finally:
        RUNNING[name].release()
