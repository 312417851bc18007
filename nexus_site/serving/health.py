"""Is it alive, can it work, what does it count: for proxies and Prometheus."""

import psycopg
import structlog
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from django_prometheus.exports import ExportToDjangoView
from kombu.exceptions import OperationalError
from prometheus_client import generate_latest

from nexus_site.celery import app
from nexus_site.run.postgres import PostgresUnavailable
from tasks.insight.prometheus import LIVE
from toolbox.scheduler import database_now, late_jobs, scheduler_problem, seconds_since_last_run

QUICKLY = {"connect_timeout": 2}  # seconds, psycopg's least

log = structlog.get_logger(__name__)


@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """This process answers."""
    return JsonResponse({"status": "alive"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Whether database and broker can be reached; and, in words, whether scheduled jobs run."""
    checks = {"database": database_problem(), "broker": broker_problem()}
    scheduler = "unknown"
    try:
        scheduler = scheduler if checks["database"] else scheduler_status()
    except DatabaseError as error:
        checks["database"] = type(error).__name__
    fine = not any(checks.values())
    return JsonResponse(
        {"status": "ready" if fine else "unavailable"}
        | {name: problem or "reachable" for name, problem in checks.items()}
        | {"scheduler": scheduler},
        status=200 if fine else 503,
    )


def database_problem() -> str:
    """Why the database does not answer; empty if it does.

    By a connection of its own: while there is none to be had, the pool would keep who asks waiting.
    """
    try:
        psycopg.connect(**connection.get_connection_params() | QUICKLY).close()
    except (psycopg.Error, PostgresUnavailable) as error:
        return type(error).__name__
    return ""


def broker_problem() -> str:
    """Why the broker does not take messages; empty if it does."""
    try:
        with app.connection(connect_timeout=2) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except (OperationalError, OSError) as error:
        return type(error).__name__
    return ""


def scheduler_status() -> str:
    """When a job last ran, by the database's time, and which jobs are late."""
    now = database_now()
    problem = scheduler_problem(now=now)
    if problem:
        return problem
    late = late_jobs(now=now)
    last = f"last run {seconds_since_last_run(now=now) or 0:.0f} s ago"
    return last + (f"; late: {', '.join(late)}" if late else "")


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """What all processes of this machine counted."""
    answer: HttpResponse = ExportToDjangoView(request)
    try:
        answer.content += generate_latest(LIVE)
    except DatabaseError:
        log.warning("live_metrics_not_counted", exc_info=True)
    return answer
