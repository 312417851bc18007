"""Tables as after years: much that has ended, and something open for each agent."""

from __future__ import annotations

from django.db import connection
from django.db.models import F
from django.utils import timezone

from orgchart.models import Agent, Organisation
from tests.plans import renew_statistics
from workspace.models import Repository

ROWS = 12_000
"""Settled rows of each table, …"""
AGENTS = 60
"""… and the agents that they are of: a third has left, each other has an open row, not due."""

SOURCE = """
WITH counted AS (
    SELECT id AS agent, organisation_id, reports_to_id, n, active AND n = 0 AS is_open,
        row_number() OVER (ORDER BY n, id) AS number
    FROM orgchart_agent, generate_series(0, %(each)s) AS n WHERE handle LIKE 'extra\\_%%'
), rows AS (
    SELECT *, to_char(made, 'YYYYMMDDHH24MISSUS') || '-fill' AS stamp
    FROM counted, LATERAL (SELECT now() + (number - 20000) * interval '1 minute' AS made) AS dated
)
"""
TABLES = {
    "mailroom_mail": """
        INSERT INTO mailroom_mail (id, organisation_id, sender_id, recipient_id, from_agent,
            to_agent, mail_type, subject, body, status, created_at, delivered_at)
        SELECT 'MAIL-' || stamp, organisation_id, agent,
            reports_to_id, 'extra', 'it_manager', 'escalation', 'Stuck', '', 'delivered', made,
            made
        FROM rows
    """,
    "mailroom_escalation": """
        INSERT INTO mailroom_escalation (mail_id, organisation_id, sender_id, recipient_id, state,
            due_at, answered_by, answered_at, version)
        SELECT 'MAIL-' || stamp, organisation_id, agent,
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
            CASE WHEN is_open THEN 'pending' ELSE 'sent' END, 0, now() + interval '1 day', made,
            CASE WHEN NOT is_open THEN now() END, ''
        FROM rows
    """,
    "tasks_task": """
        INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
            metadata, required_role, task_type, created_by, completed_at, owner_id, claimed_at,
            owner_role, lease_due_at)
        SELECT organisation_id, number, 'Task', '', '',
            CASE WHEN is_open THEN 'in_progress' ELSE 'completed' END, '{}', '', '', 'system:test',
            CASE WHEN NOT is_open THEN now() END, agent, made, 'backend_worker',
            CASE WHEN is_open THEN now() + interval '1 day' END
        FROM rows
    """,
    "contracts_contract": """
        INSERT INTO contracts_contract (id, kind, issuer_name, title, body, priority, mode,
            workspace_scope, assigned_branch, grants, environment, artifact, currency, state,
            version, created_at, accepted_at, closed_at, closed_by, closed_reason, assignee_id,
            issuer_id, notice_id, organisation_id)
        SELECT 'CON-' || stamp, 'work', 'it_manager',
            'Work', '', 'medium', 'chat_safe', '{}', '', '[]', '', '', '',
            CASE WHEN is_open THEN 'in_progress' ELSE 'cancelled' END, 1, made, made,
            CASE WHEN NOT is_open THEN now() END, CASE WHEN NOT is_open THEN 'board' ELSE '' END,
            CASE WHEN NOT is_open THEN 'over' ELSE '' END, agent,
            reports_to_id, 'MAIL-' || number, organisation_id
        FROM rows
    """,
    "contracts_deadline": """
        INSERT INTO contracts_deadline (organisation_id, contract_id, stage, due_at, done_at)
        SELECT organisation_id, id, 'overdue', now() + interval '1 day',
            CASE WHEN state = 'cancelled' THEN now() END
        FROM contracts_contract
    """,
    "toolbox_frame": """
        INSERT INTO toolbox_frame (organisation_id, kind, name, opener_id, assignee_id, depth,
            instruction, state, version, reason, opened_at, due_at, taken_at, ended_at)
        SELECT organisation_id, 'delegation', '', reports_to_id, agent, 1, '',
            CASE WHEN is_open THEN 'taken' ELSE 'returned' END, 1, '', made,
            now() + interval '1 day', made, CASE WHEN NOT is_open THEN now() END
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
            'Note', '', repeat('a', 64), '', '', false, '', made,
            CASE WHEN NOT is_open THEN now() END
        FROM rows
    """,
    "workspace_deployment": """
        INSERT INTO workspace_deployment (id, organisation_id, environment, service, artifact,
            deployed_by_id, state, version, problem, started_at, due_at, settled_at)
        SELECT 'DEP-' || stamp, organisation_id, 'staging', 'service-' || number, '', agent,
            CASE WHEN is_open THEN 'started' ELSE 'succeeded' END, 1, '', made,
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
    "documents_memory": """
        INSERT INTO documents_memory (organisation_id, scope, agent_id, author_id, person, text,
            words, created_at)
        SELECT organisation_id, 'agent', agent, agent, '', 'A word', 'word', made FROM rows
    """,
    "documents_artifact": """
        INSERT INTO documents_artifact (organisation_id, agent_id, name, version, path, description,
            content, sha256, frame_ref, created_at, filed_at)
        SELECT organisation_id, agent, 'artifact-' || number, 1, 'artifacts/' || number, '', '',
            repeat('a', 64), '', made, made
        FROM rows
    """,
    "toolbox_session": """
        INSERT INTO toolbox_session (id, organisation_id, agent_id, standing, mode, opened_at,
            contract_ref)
        SELECT gen_random_uuid(), organisation_id, agent, n = 0, 'chat_safe', made, '' FROM rows
    """,
    "toolbox_modegrant": """
        INSERT INTO toolbox_modegrant (organisation_id, session_id, mode, contract_ref, reason,
            opened_by, opened_at, closed_by, closed_at)
        SELECT organisation_id, id, 'coding', 'CON-' || row_number() OVER (), '', 'agent:ceo',
            opened_at, 'agent:ceo', CASE WHEN NOT standing THEN now() END
        FROM toolbox_session
    """,
    "mailroom_contactgrant": """
        INSERT INTO mailroom_contactgrant (organisation_id, contract_ref, sender_id, recipient_id,
            types, opened_at, closed_at)
        SELECT organisation_id, 'CON-' || number, agent, reports_to_id, '[]', made,
            CASE WHEN NOT is_open THEN now() END
        FROM rows
    """,
    "contracts_report": """
        INSERT INTO contracts_report (organisation_id, contract_id, kind, report_type, title, body,
            author_id, mail_id, commit, created_at)
        SELECT organisation_id, id, 'progress', 'status', 'So far', '', assignee_id, notice_id, '',
            created_at
        FROM contracts_contract
    """,
    "contracts_verdict": """
        INSERT INTO contracts_verdict (organisation_id, contract_id, report_id, finding, evidence,
            body, judge_id, mail_id, commit, run_digest, created_at)
        SELECT organisation_id, contract_id, id, 'PASS', '[]', 'It works', author_id, mail_id, '',
            '', created_at
        FROM contracts_report
    """,
    "tasks_feedback": """
        INSERT INTO tasks_feedback (organisation_id, source, author, category, body, external_id,
            received_at)
        SELECT organisation_id, 'shop', '', 'bug', 'It broke', number::text, made FROM rows
    """,
    "workspace_run": """
        INSERT INTO workspace_run (organisation_id, agent_id, tool, paths, commit, asked_at,
            ends_by, ended_at, timed_out, stopped_for, output, output_sha256)
        SELECT organisation_id, agent, 'run_tests', '{}', repeat('a', 40), made, made,
            CASE WHEN NOT is_open THEN now() END, false, '', '',
            CASE WHEN is_open THEN '' ELSE repeat('a', 64) END
        FROM rows
    """,
    "workspace_imagebuild": """
        INSERT INTO workspace_imagebuild (organisation_id, digest, service, tag, path, contract_ref,
            built_by_id, built_at)
        SELECT organisation_id, 'sha256:' || lpad(number::text, 64, '0'), 'shop', 'shop:' || number,
            '', '', agent, made
        FROM rows
    """,
    "workspace_branchmove": """
        INSERT INTO workspace_branchmove (organisation_id, repository_id, branch, kind, old, new,
            merged, by, at)
        SELECT organisation_id, 1, 'branch-' || number, 'create', '', lpad(number::text, 40, '0'),
            '', 'agent:ceo', made
        FROM rows
    """,
    "workspace_draft": """
        INSERT INTO workspace_draft (contract_id, agent_id, branch, commit, checked_out, merging,
            merged_tree, conflicts, updated_at)
        SELECT id, assignee_id, 'work/' || id, repeat('a', 40), false, '', '', '{}', created_at
        FROM contracts_contract WHERE state = 'in_progress'
    """,
    "governance_case": """
        INSERT INTO governance_case (id, organisation_id, title, request, request_sha256,
            opened_by_id, opened_by_name, opened_at, state, stage, round, max_rounds, failed_by,
            paused_by, version, moved_at)
        SELECT 'CASE-' || stamp, organisation_id, 'A case', 'Build it', repeat('a', 64), agent, '',
            made, CASE WHEN is_open THEN 'open' ELSE 'delivered' END,
            CASE WHEN is_open THEN 'ANALYSIS' ELSE 'VERDICT' END, 1, 3, '', '', 1, made
        FROM rows
    """,
    "governance_violation": """
        INSERT INTO governance_violation (organisation_id, case_id, round, stage, agent_id,
            agent_name, offices, fault, code, reason, aborted, at)
        SELECT organisation_id, 'CASE-' || stamp, 1, 'ANALYSIS', agent, 'extra', '{}',
            'ILLEGAL_INPUT', 'INVALID_PARAMS', '', false, made - interval '90 days'
        FROM rows
    """,
    "toolbox_usage": """
        INSERT INTO toolbox_usage (agent_id, organisation_id, minute, bytes)
        SELECT agent, organisation_id, now() - n * interval '1 minute', 1
        FROM rows
    """,
}


def fill(organisation: Organisation, rows: int = ROWS) -> None:
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
    Repository.objects.create(
        id=1, organisation=organisation, main="main", created_at=timezone.now()
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, insert in TABLES.items():
            cursor.execute(SOURCE + insert, {"each": rows // AGENTS})
            renew_statistics(table)
        renew_statistics("orgchart_agent")
        cursor.execute("SET LOCAL session_replication_role = origin")
