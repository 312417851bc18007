"""What Prometheus is told of the database: what waits there, and whether jobs and seals keep up."""

from __future__ import annotations

from django.db import connection
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from core.database import database_now
from core.kept import KeptMetrics
from ledger import chain_end
from ledger.sealer import read_backlog
from toolbox.scheduler import failing_jobs, late_jobs, seconds_since_last_run

# Each of these two states of notices has an index of its own.
WAITING = """
SELECT 'notices', state, count(*) FROM mailroom_outgoingnotice WHERE state = 'pending' GROUP BY 2
UNION ALL
SELECT 'notices', state, count(*) FROM mailroom_outgoingnotice WHERE state = 'dead' GROUP BY 2
UNION ALL
SELECT 'deployments', state, count(*) FROM workspace_deployment
    WHERE state = 'started' OR started_at > now() - interval '1 day' GROUP BY 2
"""


def _count() -> list[Metric]:
    now = database_now()
    backlog = read_backlog(now=now)
    since = seconds_since_last_run(now=now)
    waiting = GaugeMetricFamily(
        "nexus_work",
        "Notices that were not sent, and deployments of the last 24 hours, by state",
        labels=["kind", "state"],
    )
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        for kind, state, count in cursor.fetchall():
            waiting.add_metric([kind, state], count)
    return [
        GaugeMetricFamily(
            "nexus_scheduler_idle_seconds",
            "Seconds since any scheduled job ran; -1 if none ever ran",
            value=-1 if since is None else since,
        ),
        GaugeMetricFamily(
            "nexus_scheduler_late_jobs",
            "Scheduled jobs that have not run for three of their periods",
            value=len(late_jobs(now=now)),
        ),
        GaugeMetricFamily(
            "nexus_scheduler_failing_jobs",
            "Scheduled jobs whose last run failed, or failed for a row",
            value=len(failing_jobs()),
        ),
        GaugeMetricFamily(
            "nexus_ledger_unsealed_seconds",
            "Age of the oldest event of the ledger that is not sealed; 0 if all are",
            value=backlog.seconds if backlog else 0,
        ),
        GaugeMetricFamily(
            "nexus_ledger_whole",
            "1 if the ledger's chain ends as this machine kept it, else 0",
            value=chain_end.is_whole(),
        ),
        waiting,
    ]


STATE = CollectorRegistry()
STATE.register(KeptMetrics(_count, seconds=10))
