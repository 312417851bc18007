"""Celery's worker, and its beat, as one machine needs them."""

import os
import warnings

from celery.platforms import SecurityWarning
from django.conf import settings

from nexus_site.celery import app
from nexus_site.run import safety
from nexus_site.run.beat import EndingBeat

# `make check` and `manage.py` run Django's checks. In each process they would take half a second
# more, and copy memory that the processes share.
os.environ["CELERY_SKIP_CHECKS"] = "1"


def work() -> None:
    """Run until asked to stop; never as a role that owns the tables in production."""
    if problem := safety.problem_of_start():
        raise SystemExit(problem)
    # Root in a container is root nowhere else, and messages are JSON, never code.
    warnings.simplefilter("ignore", SecurityWarning)
    # Not `worker_main`: the modules of the command line cost 20 MB. No other workers talk to it. It
    # announces itself to none: where the broker died meanwhile that is tried without end, and a
    # worker that was asked to stop would not.
    worker = app.Worker(
        pool="threads",
        concurrency=settings.WORKER_THREADS,
        loglevel="WARNING",
        quiet=True,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
    )
    worker.start()
    raise SystemExit(worker.exitcode)


def beat() -> None:
    """Run Celery beat, which wakes the worker for every scheduled job, until asked to stop."""
    EndingBeat(app=app, quiet=True, loglevel="WARNING", remote_control=False).run()
