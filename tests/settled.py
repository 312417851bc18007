"""Tables as after years: much that has ended, and something open for each agent."""

from __future__ import annotations

from django.db import connection
from django.db.models import F

from orgchart.models import Agent, Organisation

ROWS = 12_000
"""Settled rows of each table, …"""
AGENTS = 300
"""… and the agents that they are of: a third has left, each other has an open row, not due."""

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
        SELECT organisation_id, gen_random_uuid(), 'email', 'board@example.org',
            '{"type": "case.paused", "data": {"subject": "A case waits"}}',
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
    "ledger_event": """
        INSERT INTO ledger_event (id, at, organisation_id, actor, action, decision, code, subject,
            for_agent_id, kind, digest)
        SELECT gen_random_uuid(), now() - number * interval '1 minute', organisation_id,
            'agent:extra_1', CASE WHEN is_open THEN 'tool.denied' ELSE 'mail.delivered' END,
            CASE WHEN is_open THEN 'deny' ELSE 'allow' END,
            CASE WHEN is_open THEN 'TOOL_NOT_BOUND' ELSE '' END, 'mail:' || number, agent, 'mail',
            decode(repeat('00', 32), 'hex')
        FROM rows
    """,
    "mailroom_mailrejection": """
        INSERT INTO mailroom_mailrejection (organisation_id, from_agent, to_agent,
            mail_type, code, reason, attempted_at)
        SELECT organisation_id, 'extra_1', 'ceo', 'info', 'CONTACT_DENIED', '',
            now() - number * interval '1 minute'
        FROM rows
    """,
    "toolbox_usage": """
        INSERT INTO toolbox_usage (agent_id, organisation_id, minute, bytes)
        SELECT agent, organisation_id, now() - n * interval '1 minute', 1
        FROM rows
    """,
}


def fill(organisation: Organisation) -> None:
    """Fill the tables of an organisation of the NEXUS pack, and let PostgreSQL look at them."""
    like = Agent.objects.get(organisation=organisation, handle="backend_worker")
    manager = Agent.objects.get(organisation=organisation, handle="it_manager")
    Agent.objects.bulk_create(
        Agent(
            organisation=organisation,
            handle=f"extra_{n}",
            role_id=like.role_id,
            reports_to=manager,
            active=n % 3 > 0,
        )
        for n in range(AGENTS)
    )
    Organisation.objects.filter(id=organisation.id).update(policy_version=F("policy_version") + 1)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, rows in TABLES.items():
            cursor.execute(SOURCE + rows, {"each": ROWS // AGENTS})
            cursor.execute(f"ANALYZE {table}")
        cursor.execute("ANALYZE orgchart_agent")
        cursor.execute("SET LOCAL session_replication_role = origin")
