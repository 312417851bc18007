"""What is settled costs the scheduled jobs nothing: they read what is open, however much has ended.

Plans and row counts decide, no times. Of a job that the clock starts the worst case is a run in
which nothing is due: it happens every few seconds.
"""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.utils import timezone

from core.database import PLANNED
from nexus_site.serving.metrics import WAITING
from orgchart.models import Organisation
from tasks.insight import prometheus
from tests.loaded import loaded
from tests.plans import rows_touched
from tests.settled import fill
from toolbox.scheduler import JOBS

__all__ = ["loaded"]

UNSENT, _, _ = WAITING.rpartition("UNION ALL")
MOST = 4000
"""Rows that one statement may touch: those that are open, and their agents."""
IN_PROGRESS = """
UPDATE tasks_task SET status = 'in_progress', completed_at = NULL, is_assigned = %s
FROM orgchart_agent AS a WHERE a.id = owner_id AND a.active AND status = 'completed'
"""
OF_ITS_OWN = {"ledger seals", "charts"}
"""Jobs that read what is new in the ledger, and one file for each organisation."""


@pytest.fixture(scope="module")
def full(loaded, django_db_blocker):
    """The company with long tables."""
    with django_db_blocker.unblock():
        fill(loaded.organisation)
    return loaded


@pytest.mark.parametrize("name", sorted(JOBS.keys() - OF_ITS_OWN))
def test_reads_what_is_open(full, django_db_blocker, name):
    with django_db_blocker.unblock(), transaction.atomic():
        assert_reads_few_rows(name)
        transaction.set_rollback(True)


@pytest.mark.parametrize("is_assigned", [True, False])
def test_reads_no_tasks_that_active_agents_work_on(full, django_db_blocker, is_assigned):
    """Also where most tasks of the installation are unfinished, and one organisation has leases."""
    with django_db_blocker.unblock(), transaction.atomic():
        Organisation.objects.create(slug="with-leases", name="X", settings={"task_lease": 60})
        with connection.cursor() as cursor:
            cursor.execute(IN_PROGRESS, [is_assigned])
            assert cursor.rowcount > MOST
            cursor.execute("ANALYZE tasks_task")
        assert_reads_few_rows("leases")
        transaction.set_rollback(True)


def assert_reads_few_rows(name):
    found = []

    def keep(execute, sql, values, many, context):
        found.append((sql, values, not PLANNED.get()))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(keep):
        JOBS[name].handle(timezone.now())
    reads = [each for each in found if " FROM " in each[0]]
    assert reads
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")
    for sql, values, kept in reads:
        # A plan kept from a time when much was due would later read what has ended.
        assert not (kept and ("SKIP LOCKED" in sql or "DISTINCT" in sql)), sql
        assert rows_touched(sql, values, kept=kept) < MOST, sql


@pytest.mark.parametrize("statement", [prometheus.STATES, UNSENT], ids=["tasks", "notices"])
def test_metrics_count_what_has_not_ended_alone(full, django_db_blocker, statement):
    with django_db_blocker.unblock():
        assert rows_touched(statement, None) < MOST
