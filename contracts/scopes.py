"""The folders that an agent's contracts open to it."""

from __future__ import annotations

from django.db import connection

from contracts import rules
from contracts.models import Contract
from contracts.rows import agent_of, contract_facts
from contracts.vocabulary import ContractState
from orgchart.compiling import current_policy

SCOPES = """
SELECT a.organisation_id, %s = ANY(r.tools), c.workspace_scope
FROM orgchart_agent a
JOIN orgchart_role r ON r.id = a.role_id
LEFT JOIN contracts_contract c ON c.assignee_id = a.id AND c.state = 'in_progress'
WHERE a.id = %s
ORDER BY c.id
"""


def active_scopes(agent_id: int) -> tuple[str, ...]:
    """The folders of the agent's contracts in progress.

    For QA also those of the work that it may judge now (seed 000 §1.9); its role only reads there.
    """
    with connection.cursor() as cursor:
        cursor.execute(SCOPES, [rules.WRITE_VERDICT, agent_id])
        found = cursor.fetchall()
    scopes = [scope for _, _, own in found for scope in own or ()]
    if found and found[0][1]:
        scopes += _scopes_to_judge(agent_id, found[0][0])
    return tuple(dict.fromkeys(scopes))


def _scopes_to_judge(agent_id: int, organisation_id: int) -> list[str]:
    policy = current_policy(organisation_id)
    judge = agent_of(policy, agent_id)
    rows = Contract.objects.filter(organisation_id=organisation_id, state=ContractState.REVIEW)
    return [
        scope
        for row in rows.exclude(workspace_scope=[]).defer("body")
        if rules.is_judge_of(contract_facts(row, policy), judge, policy)
        and row.assignee_id != agent_id
        for scope in row.workspace_scope
    ]
