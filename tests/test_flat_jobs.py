"""What is settled costs the scheduled jobs nothing: they read what is open, however much has ended.

Plans and row counts decide, no times. Of a job that the clock starts the worst case is a run in
which nothing is due: it happens every few seconds.
"""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.utils import timezone

from orgchart.models import Agent
from tests.loaded import loaded
from tests.plans import rows_touched
from toolbox.scheduler import JOBS

__all__ = ["loaded"]

ROWS = 12_000
"""Settled rows of each table, …"""
AGENTS = 300
"""… and the agents that they are of: a third has left, each other has an open row, not due."""
MOST = 4000
"""Rows that one statement may touch: those that are open, and their agents."""

SOURCE = """
WITH rows AS (
    SELECT id AS agent, organisation_id, reports_to_id, n, active AND n = 0 AS is_open,
        row_number() OVER (ORDER BY n, id) AS number
    FROM orgchart_agent, generate_series(0, %(each)s) AS n WHERE handle LIKE 'extra\\_%%'
)
"""
TABLES = {
    "mailroom_mail": """
        INSERT INTO mailroom_mail (id, organisation_id, sender_id, recipient_id, from_agent,
            to_agent, mail_type, subject, body, status, created_at, delivered_at)
        SELECT 'MAIL-' || lpad(number::text, 20, '0') || '-fill', organisation_id, agent,
            reports_to_id, 'extra', 'it_manager', 'escalation', 'Stuck', '', 'delivered', now(),
            now()
        FROM rows
    """,
    "mailroom_escalation": """
        INSERT INTO mailroom_escalation (mail_id, organisation_id, sender_id, recipient_id, state,
            due_at, answered_by, answered_at, version)
        SELECT 'MAIL-' || lpad(number::text, 20, '0') || '-fill', organisation_id, agent,
            reports_to_id, CASE WHEN is_open THEN 'open' ELSE 'answered' END,
            now() + interval '1 day', CASE WHEN is_open THEN '' ELSE 'agent:it_manager' END,
            CASE WHEN NOT is_open THEN now() END, 1
        FROM rows
    """,
    "mailroom_outgoingnotice": """
        INSERT INTO mailroom_outgoingnotice (organisation_id, event_id, channel, target, payload,
            state, attempts, due_at, created_at, settled_at, last_problem)
        SELECT organisation_id, gen_random_uuid(), 'email', 'board@example.org', '{}',
            CASE WHEN is_open THEN 'pending' ELSE 'sent' END, 0, now() + interval '1 day', now(),
            CASE WHEN NOT is_open THEN now() END, ''
        FROM rows
    """,
    "tasks_task": """
        INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
            metadata, required_role, task_type, created_by, completed_at, owner_id, claimed_at,
            owner_role, lease_due_at)
        SELECT organisation_id, number, 'Task', '', '',
            CASE WHEN is_open THEN 'in_progress' ELSE 'completed' END, '{}', '', '', 'system:test',
            CASE WHEN NOT is_open THEN now() END, agent, now(), 'backend_worker',
            CASE WHEN is_open THEN now() + interval '1 day' END
        FROM rows
    """,
    "contracts_contract": """
        INSERT INTO contracts_contract (id, kind, issuer_name, title, body, priority, mode,
            workspace_scope, assigned_branch, grants, environment, artifact, currency, state,
            version, created_at, accepted_at, closed_at, closed_by, closed_reason, assignee_id,
            issuer_id, notice_id, organisation_id)
        SELECT 'CON-' || lpad(number::text, 20, '0') || '-fill', 'work', 'it_manager',
            'Work', '', 'medium', 'chat_safe', '{}', '', '[]', '', '', '',
            CASE WHEN is_open THEN 'in_progress' ELSE 'cancelled' END, 1, now(), now(),
            CASE WHEN NOT is_open THEN now() END, CASE WHEN NOT is_open THEN 'board' ELSE '' END,
            CASE WHEN NOT is_open THEN 'over' ELSE '' END, agent,
            reports_to_id, 'MAIL-' || number, organisation_id
        FROM rows
    """,
    "contracts_deadline": """
        INSERT INTO contracts_deadline (contract_id, stage, due_at, done_at)
        SELECT id, 'overdue', now() + interval '1 day',
            CASE WHEN state = 'cancelled' THEN now() END
        FROM contracts_contract
    """,
    "toolbox_frame": """
        INSERT INTO toolbox_frame (organisation_id, kind, name, opener_id, assignee_id, depth,
            instruction, state, version, reason, opened_at, due_at, taken_at, ended_at)
        SELECT organisation_id, 'delegation', '', reports_to_id, agent, 1, '',
            CASE WHEN is_open THEN 'taken' ELSE 'returned' END, 1, '', now(),
            now() + interval '1 day', now(), CASE WHEN NOT is_open THEN now() END
        FROM rows
    """,
    "toolbox_idempotencyrecord": """
        INSERT INTO toolbox_idempotencyrecord (agent_id, key, request_digest, status, answer,
            due_at)
        SELECT agent, 'key-' || n, '', 200, '', now() + interval '1 day'
        FROM rows
    """,
    "documents_document": """
        INSERT INTO documents_document (organisation_id, kind, author_id, folder, path, title,
            body, sha256, report_type, department, for_board, contract_ref, created_at, filed_at)
        SELECT organisation_id, 'note', agent, 'notes/', 'notes/' || number,
            'Note', '', repeat('a', 64), '', '', false, '', now(),
            CASE WHEN NOT is_open THEN now() END
        FROM rows
    """,
    "workspace_deployment": """
        INSERT INTO workspace_deployment (id, organisation_id, environment, service, artifact,
            deployed_by_id, state, version, problem, started_at, due_at, settled_at)
        SELECT 'DEP-' || number, organisation_id, 'staging', 'service-' || number, '', agent,
            CASE WHEN is_open THEN 'started' ELSE 'succeeded' END, 1, '', now(),
            now() + interval '1 day', CASE WHEN NOT is_open THEN now() END
        FROM rows
    """,
    "toolbox_usage": """
        INSERT INTO toolbox_usage (agent_id, organisation_id, minute, bytes)
        SELECT agent, organisation_id, now() - n * interval '1 minute', 1
        FROM rows
    """,
}
OF_ITS_OWN = {"ledger seals", "charts"}
"""Jobs that read what is new in the ledger, and one file for each organisation."""


@pytest.fixture(scope="module")
def full(loaded, django_db_blocker):
    """The company with long tables, as ANALYZE sees them."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        manager = Agent.objects.get(handle="it_manager")
        Agent.objects.bulk_create(
            Agent(
                organisation=loaded.organisation,
                handle=f"extra_{n}",
                role_id=Agent.objects.get(handle="backend_worker").role_id,
                reports_to=manager,
                active=n % 3 > 0,
            )
            for n in range(AGENTS)
        )
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, rows in TABLES.items():
            cursor.execute(SOURCE + rows, {"each": ROWS // AGENTS})
            cursor.execute(f"ANALYZE {table}")
        cursor.execute("ANALYZE orgchart_agent")
        cursor.execute("SET LOCAL session_replication_role = origin")
    return loaded


@pytest.mark.parametrize("name", sorted(JOBS.keys() - OF_ITS_OWN))
def test_reads_what_is_open(full, django_db_blocker, name):
    found = []

    def keep(execute, sql, values, many, context):
        found.append((sql, values))
        return execute(sql, values, many, context)

    with django_db_blocker.unblock(), transaction.atomic():
        with connection.execute_wrapper(keep):
            JOBS[name].handle(timezone.now())
        reads = [(sql, values) for sql, values in found if " FROM " in sql]
        assert reads
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_sort = off")
        for sql, values in reads:
            assert rows_touched(sql, values) < MOST, sql
        transaction.set_rollback(True)
