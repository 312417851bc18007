"""The Celery task that runs a scheduled job."""

import threading
from collections import OrderedDict, defaultdict

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
MISSED: OrderedDict[str, None] = OrderedDict()
"""Jobs for which there was no such thread, in their order: the next that is free runs them."""


@shared_task(name="toolbox.run_job", ignore_result=True)  # type: ignore[untyped-decorator]
def run_job(name: str) -> int:
    """Run a scheduled job; duplicate and late messages are harmless and cost one query.

    Only one thread of a process runs a job at a time, and jobs that wait for others never take the
    last one (Spec: clocks 15): a job that finds no place runs when one that has it ends.
    """
    if name not in scheduler.JOBS:  # of another version, or forged
        log.warning("unknown_job", job=name[:64])
        return 0
    if not scheduler.JOBS[name].waits_for_others:
        return _run_alone(name)
    MISSED[name] = None
    handled = 0
    while MISSED and WAITING.acquire(blocking=False):
        try:
            handled += _run_alone(_take_missed())
        finally:
            WAITING.release()
    return handled


def _take_missed() -> str:
    """The job that waits longest, or '' where another thread took the last one."""
    try:
        name, _ = MISSED.popitem(last=False)
    except KeyError:
        return ""
    return name


def _run_alone(name: str) -> int:
    """Run a job unless another thread does, or it just ran."""
    if not name or not RUNNING[name].acquire(blocking=False):
        return 0
    try:
        if scheduler.has_run_recently(name, now=database_now()):
            return 0
        return scheduler.run_job(name)
    finally:
        RUNNING[name].release()
