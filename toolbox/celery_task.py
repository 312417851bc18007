"""The Celery task that runs a scheduled job."""

import threading
from collections import defaultdict

import structlog
from celery import shared_task

from core.database import database_now
from toolbox import scheduler

log = structlog.get_logger(__name__)

RUNNING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Held while this process runs a job."""


@shared_task(name="toolbox.run_job", ignore_result=True)  # type: ignore[untyped-decorator]
def run_job(name: str) -> int:
    """Run a scheduled job; duplicate and late messages are harmless and cost one query.

    Only one thread of a process runs a job at a time: a slow job, such as notices to a slow
    receiver, would otherwise occupy every thread, and no other job would run.
    """
    if name not in scheduler.JOBS:  # of another version, or forged
        log.warning("unknown_job", job=name[:64])
        return 0
    if not RUNNING[name].acquire(blocking=False):
        return 0
    try:
        if scheduler.has_run_recently(name, now=database_now()):
            return 0
        return scheduler.run_job(name)
    finally:
        RUNNING[name].release()
