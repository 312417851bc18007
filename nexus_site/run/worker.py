"""Celery's worker, and its beat, as one machine needs them."""

import warnings

from celery.platforms import SecurityWarning
from django.conf import settings

from nexus_site.celery import app
from nexus_site.run import roles

ARGUMENTS = [
    *["--quiet", "worker", "--pool", "threads", "--loglevel", "WARNING"],
    *["--without-mingle", "--without-gossip"],  # there are no other workers to talk to
]


def work() -> None:
    """Run until asked to stop; never as a role that owns the tables in production."""
    if problem := roles.problem_of_start():
        raise SystemExit(problem)
    # Root in a container is root nowhere else, and messages are JSON, never code.
    warnings.simplefilter("ignore", SecurityWarning)
    app.worker_main([*ARGUMENTS, "--concurrency", str(settings.WORKER_THREADS)])


def beat() -> None:
    """Run Celery beat, which wakes the worker for every scheduled job, until asked to stop."""
    app.Beat(quiet=True, loglevel="WARNING", remote_control=False).run()
