"""Celery's worker, and its beat, as one machine needs them."""

import os
import threading
import time
import warnings

from celery.platforms import SecurityWarning
from celery.signals import worker_shutting_down
from celery.worker import state
from django.conf import settings

from nexus_site.celery import app

ARGUMENTS = [
    *["--quiet", "worker", "--pool", "threads", "--loglevel", "WARNING"],
    *["--without-mingle", "--without-gossip"],  # there are no other workers to talk to
]


def end_after_the_last_job() -> None:
    """End this process once no job runs.

    Celery would sleep out its polling first, seconds on end. What it received and did not begin is
    lost with it, and may be: what is due stays due in the database.
    """
    while state.active_requests:
        time.sleep(0.05)
    os._exit(0)


def leave_soon(**signal: object) -> None:
    """Receive Celery's word that it was asked to stop."""
    threading.Thread(target=end_after_the_last_job, daemon=True).start()


def work() -> None:
    """Run until asked to stop."""
    # Root in a container is root nowhere else, and messages are JSON, never code.
    warnings.simplefilter("ignore", SecurityWarning)
    worker_shutting_down.connect(leave_soon, weak=False)
    app.worker_main([*ARGUMENTS, "--concurrency", str(settings.WORKER_THREADS)])


def beat() -> None:
    """Run Celery beat, which wakes the worker for every scheduled job, until asked to stop."""
    app.Beat(quiet=True, loglevel="WARNING", remote_control=False).run()
