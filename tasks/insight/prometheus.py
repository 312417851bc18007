"""The measures at /metrics: the last 24 hours of every organisation, at most a minute old.

Organisations are named by their number: who reads metrics need not know the tenants.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from core.database import database_now
from core.kept import KeptMetrics
from orgchart.models import Organisation
from tasks.insight.measures import measure_tasks
from tasks.vocabulary import UNFINISHED_SQL

PERIOD = timedelta(hours=24)

# `BETWEEN` keeps PostgreSQL from reading all tasks: it takes each state for a large part of them.
STATES = f"""
SELECT o.id::text, s.status, (SELECT count(*) FROM (
    SELECT 1 FROM tasks_task t
    WHERE t.organisation_id = o.id AND t.status BETWEEN s.status AND s.status LIMIT 100000
) AS counted)
FROM orgchart_organisation o
CROSS JOIN unnest(ARRAY[{UNFINISHED_SQL}]) AS s(status) ORDER BY 1, 2
"""


def count_measures() -> list[Metric]:
    """The measures of every organisation, and its unfinished tasks by state."""
    measured = GaugeMetricFamily(
        "nexus_tasks_measure",
        "Task measures of the last 24 hours: percent, or a count (spec: tasks 48)",
        labels=["organisation", "measure"],
    )
    counted = GaugeMetricFamily(
        "nexus_tasks_measure_events",
        "What a measure counted: the part, and the whole it is a part of",
        labels=["organisation", "measure", "of"],
    )
    until = database_now()
    for organisation in Organisation.objects.order_by("id"):
        for figure in measure_tasks(organisation.id, since=until - PERIOD, until=until):
            labels = [str(organisation.id), figure.measure.name]
            if figure.value is not None:
                measured.add_metric(labels, figure.value)
            counted.add_metric([*labels, "part"], figure.part)
            if figure.whole is not None:
                counted.add_metric([*labels, "whole"], figure.whole)
    return [measured, counted, _states()]


def _states() -> GaugeMetricFamily:
    states = GaugeMetricFamily(
        "nexus_tasks_unfinished",
        "Unfinished tasks by state, counted up to 100,000",
        labels=["organisation", "status"],
    )
    with connection.cursor() as cursor:
        cursor.execute(STATES)
        for number, status, count in cursor.fetchall():
            states.add_metric([number, status], count)
    return states


LIVE = CollectorRegistry()
"""Metrics counted in the database at each scrape; processes count their own elsewhere."""

LIVE.register(KeptMetrics(count_measures, seconds=60))
