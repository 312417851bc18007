"""Is it alive, can it work, what does it count: for proxies and Prometheus."""

import secrets
from collections.abc import Callable

import psycopg
import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from django_prometheus.exports import ExportToDjangoView
from kombu.exceptions import OperationalError
from prometheus_client import generate_latest
from redis.exceptions import NoPermissionError, RedisError

from core.database import database_now, is_damaged, limit_lock_waits
from core.kept import Kept
from documents.root import tree_status
from ledger import chain_end
from ledger.sealer import read_backlog
from nexus_site.celery import app
from nexus_site.run.database.base import BoundedConnection
from nexus_site.run.postgres import PostgresUnavailable
from nexus_site.serving.metrics import STATE
from nexus_site.serving.proxies import client_address
from tasks.insight.prometheus import LIVE
from toolbox.scheduler import failing_jobs, late_jobs, scheduler_problem, seconds_since_last_run
from workspace.sandbox.weaknesses import status as isolation_status

QUICKLY = {"connect_timeout": 2, "target_session_attrs": "read-write"}
"""Seconds, psycopg's least; and a replica that only reads is no database to work with."""
QUESTION, ANSWER_SECONDS = "SELECT 1", 2.0
"""A proxy lends connections of a server that hangs: only an answer shows that it works."""
NO_LONG_WAIT = 2.0
"""Seconds that a statement of health checks and metrics waits for a lock."""
LOOPBACK = frozenset({"127.0.0.1", "::1"})
BROKER_PATIENCE = {"socket_timeout": 2.0, "socket_connect_timeout": 2.0}
"""Seconds that a broker has to answer: one that hangs would hold the threads of agents, too."""
PROBE = "_kombu.binding.nexus_ready"
"""A key of Redis with the beginning that the queues' own have."""
KEPT_SECONDS = 1.0  # that an answer of `ready` holds

log = structlog.get_logger(__name__)


@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """This process answers."""
    return JsonResponse({"status": "alive"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Whether database and broker can be reached; in words, what jobs, ledger and files say.

    Strangers may ask, so it is found out once a second at most.
    """
    fine, words = readiness()
    return JsonResponse(words, status=200 if fine else 503)


def check_readiness() -> tuple[bool, dict[str, str]]:
    """Whether it can work, and what each part says."""
    checks = {"database": database_problem(), "broker": broker_problem()}
    scheduler = ledger = "unknown"
    try:
        if not checks["database"]:
            scheduler, ledger = _said_by(scheduler_status), _said_by(ledger_status)
    except DatabaseError as error:
        checks["database"] = type(error).__name__
    fine = not any(checks.values())
    words = {"status": "ready" if fine else "unavailable"}
    words |= {name: problem or "reachable" for name, problem in checks.items()}
    words |= {"scheduler": scheduler, "ledger": ledger}
    return fine, words | {"files": tree_status(), "hands": isolation_status()}


def _said_by(status: Callable[[], str]) -> str:
    """What a part says. A page of its index that is damaged is its own matter: agents can work."""
    try:
        with transaction.atomic():
            limit_lock_waits(NO_LONG_WAIT)
            return status()
    except DatabaseError as error:
        if not is_damaged(error):
            raise
        log.exception("database_damaged")
        return "unknown: a file of PostgreSQL is damaged, the log names it"


readiness = Kept(check_readiness, seconds=KEPT_SECONDS)


def database_problem() -> str:
    """Why the database does not answer, or only reads; empty if it works.

    By a connection of its own: while there is none to be had, the pool would keep who asks waiting.
    """
    try:
        quickly = connection.get_connection_params() | QUICKLY
        with BoundedConnection.connect(**quickly, autocommit=True) as asked:
            asked.patience = ANSWER_SECONDS
            asked.execute(QUESTION)
    except (psycopg.Error, PostgresUnavailable) as error:
        return type(error).__name__
    return ""


def broker_problem() -> str:
    """Why the broker does not take messages; empty if it does.

    One that is full, or a replica that only reads, is asked to write something.
    """
    try:
        with app.connection(connect_timeout=2, transport_options=BROKER_PATIENCE) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
            redis = getattr(broker.default_channel, "client", None)
            if redis is not None:
                redis.set(PROBE, "", ex=60)
    except NoPermissionError:  # its user may write to our queues only
        return ""
    except (OperationalError, RedisError, OSError) as error:
        return type(error).__name__
    return ""


def scheduler_status() -> str:
    """When a job last ran, by the database's time, and which jobs are late or fail."""
    now = database_now()
    problem = scheduler_problem(now=now)
    if problem:
        return problem
    last = f"last run {seconds_since_last_run(now=now) or 0:.0f} s ago"
    found = {"late": late_jobs(now=now), "failing": failing_jobs()}
    return "; ".join(
        [last, *(f"{what}: {', '.join(jobs)}" for what, jobs in found.items() if jobs)]
    )


def ledger_status() -> str:
    """Whether events are sealed in time, and the chain ends as this machine kept it.

    What is not sealed could be deleted unseen. Strangers may ask: what is wrong says `verify`.
    """
    backlog = read_backlog(now=database_now())
    problems = [f"NOT SEALED for {backlog.seconds:.0f} s"] if backlog and backlog.is_late else []
    if not chain_end.is_whole():
        if not chain_end.folder_answers():
            return ", ".join([*problems, "its folder, LEDGER_DIR, does not answer"])
        problems.append("NOT WHOLE")
    return f"{', '.join(problems)}: see `manage.py ledger verify`" if problems else "sealed"


def may_read_metrics(request: HttpRequest) -> bool:
    """True with METRICS_TOKEN; without one, for this machine alone, and not in production."""
    if settings.METRICS_TOKEN:
        sent = request.META.get("HTTP_AUTHORIZATION", "")
        return secrets.compare_digest(
            sent.encode("utf-8", "replace"), f"Bearer {settings.METRICS_TOKEN}".encode()
        )
    return not settings.PRODUCTION and client_address(request) in LOOPBACK


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """What all processes of this machine counted."""
    if not may_read_metrics(request):
        text = "Metrics need Authorization: Bearer METRICS_TOKEN.\n"
        return HttpResponse(text, status=401, content_type="text/plain")
    answer: HttpResponse = ExportToDjangoView(request)
    # Prometheus waits ten seconds, and the pool as long for a database that is gone
    for registry in () if database_problem() else (STATE, LIVE):
        try:
            with transaction.atomic():
                limit_lock_waits(NO_LONG_WAIT)
                answer.content += generate_latest(registry)
        except DatabaseError:
            log.warning("live_metrics_not_counted", exc_info=True)
    return answer
