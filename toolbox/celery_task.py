"""The Celery task that runs a scheduled job."""

import threading
from collections import defaultdict
from contextlib import ExitStack

import structlog
from celery import shared_task
from django.conf import settings

from core.database import database_now
from toolbox import scheduler

log = structlog.get_logger(__name__)

RUNNING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Held while this process runs a job."""
WAITING = threading.Semaphore(max(1, settings.WORKER_THREADS - 1))
"""Threads for jobs that wait for others: one thread is left for seals and timeouts."""


@shared_task(name="toolbox.run_job", ignore_result=True)  # type: ignore[untyped-decorator]
def run_job(name: str) -> int:
    """Run a scheduled job; duplicate and late messages are harmless and cost one query.

    Only one thread of a process runs a job at a time, and jobs that wait for others never take the
    last one (Spec: clocks 15): a job that finds no place runs at one of its next messages.
    """
    if name not in scheduler.JOBS:  # of another version, or forged
        log.warning("unknown_job", job=name[:64])
        return 0
    needed: list[threading.Lock | threading.Semaphore] = [RUNNING[name]]
    if scheduler.JOBS[name].waits_for_others:
        needed.append(WAITING)
    with ExitStack() as held:
        for each in needed:
            if not each.acquire(blocking=False):
                return 0
            held.callback(each.release)
        if scheduler.has_run_recently(name, now=database_now()):
            return 0
        return scheduler.run_job(name)
