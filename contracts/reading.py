"""Looking at contracts: one whole, pages of one's own, the folders that work in progress opens."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from contracts import rules, store
from contracts.models import Contract, Verdict
from contracts.vocabulary import OPEN_STATES, Part, State
from core import paging
from core.decision import Deny
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import BOARD
from toolbox.caller import Caller

SCOPES = """
SELECT a.organisation_id, %s = ANY(r.tools), c.workspace_scope
FROM orgchart_agent a
JOIN orgchart_role r ON r.id = a.role_id
LEFT JOIN contracts_contract c ON c.assignee_id = a.id AND c.state = 'in_progress'
WHERE a.id = %s
ORDER BY c.id
"""


def read_contract(*, caller: Caller, contract_id: str) -> dict[str, Any]:
    """One contract whole, with its reports and verdicts, for who may see it.

    Raises Denied NOT_FOUND, the same for what does not exist and for what is not the caller's.
    """
    row = store.find(contract_id, caller.organisation_id)
    contract = store.facts_of(row, caller.policy)
    seen = rules.can_see(contract, caller.agent, caller.policy)
    if isinstance(seen, Deny):
        seen = rules.can_see(contract, caller.agent, caller.policy, judged=_judged(row, caller))
    caller.require(seen)
    return {
        **header(row, caller.policy),
        "body": row.body,
        "reports": [
            {
                "report_id": str(r.id),
                "kind": r.kind,
                "report_type": r.report_type,
                "title": r.title,
                "body": r.body,
                "created_at": r.created_at,
            }
            for r in row.reports.order_by("-id")
        ],
        "verdicts": [
            {
                "verdict_id": str(v.id),
                "verdict": v.finding,
                "evidence": v.evidence,
                "body": v.body,
                "judge": store.agent_of(caller.policy, v.judge_id).handle,
                "created_at": v.created_at,
            }
            for v in row.verdicts.order_by("-id")
        ],
    }


def _judged(row: Contract, caller: Caller) -> bool:
    return Verdict.objects.filter(contract_id=row.id, judge_id=caller.agent.id).exists()


def header(row: Contract, policy: Policy) -> dict[str, Any]:
    """A contract's terms and where it stands, without its text."""
    return {
        "contract_id": row.id,
        "kind": row.kind,
        "state": row.state,
        "version": row.version,
        "title": row.title,
        "issuer": store.agent_of(policy, row.issuer_id).handle if row.issuer_id else BOARD,
        "assignee": store.agent_of(policy, row.assignee_id).handle,
        "priority": row.priority,
        "deadline": row.deadline,
        "mode": row.mode,
        "workspace_scope": row.workspace_scope,
        "assigned_branch": row.assigned_branch or None,
        "grants": row.grants,
        "supersedes": row.supersedes_id,
        "answers": None if row.answers_id is None else str(row.answers_id),
        "environment": row.environment or None,
        "artifact": row.artifact or None,
        "expires_at": row.expires_at,
        "used_at": row.used_at,
        "amount": None if row.amount is None else str(row.amount),
        "currency": row.currency or None,
        "mail_id": row.notice_id,
        "created_at": row.created_at,
        "accepted_at": row.accepted_at,
        "submitted_at": row.submitted_at,
        "closed_at": row.closed_at,
        "closed_by": row.closed_by or None,
        "closed_reason": row.closed_reason or None,
    }


def list_contracts(
    *,
    caller: Caller,
    state: State | None = None,
    part: Part | None = None,
    cursor: str | None = None,
    limit: int = paging.DEFAULT_LIMIT,
) -> dict[str, Any]:
    """One page of the contracts that the caller issued or works on, newest first.

    Raises Denied INVALID_PARAMS for a cursor that no list gave.
    """
    before = paging.decode(cursor, prefix="CON-")
    sides = {
        Part.ISSUED: Contract.objects.filter(issuer_id=caller.agent.id),
        Part.ASSIGNED: Contract.objects.filter(assignee_id=caller.agent.id),
    }
    pages = [
        _page(rows, state, before, limit) for side, rows in sides.items() if part in (None, side)
    ]
    merged = pages[0] if part else pages[0].union(*pages[1:], all=True).order_by("-id")
    rows = list(merged[: limit + 1])
    shown = rows[:limit]
    return {
        "contracts": [header(row, caller.policy) for row in shown],
        "next_cursor": paging.encode(shown[-1].id) if len(rows) > limit else None,
    }


def _page(
    rows: QuerySet[Contract], state: State | None, before: str | None, limit: int
) -> QuerySet[Contract]:
    """One side's page, on an index of its own; the two are merged."""
    if state is not None:
        rows = rows.filter(state=state)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return rows.defer("body").order_by("-id")[: limit + 1]


def active_scopes(agent_id: int) -> tuple[str, ...]:
    """The folders that the agent's contracts in progress open to it.

    For QA also those of the finished work that awaits its verdict (seed 000 §1.9): its role only
    reads there.
    """
    with connection.cursor() as cursor:
        cursor.execute(SCOPES, [rules.JUDGING, agent_id])
        found = cursor.fetchall()
    scopes = [scope for _, _, own in found for scope in own or ()]
    if found and found[0][1]:
        scopes += _to_judge(agent_id, found[0][0])
    return tuple(dict.fromkeys(scopes))


def _to_judge(agent_id: int, organisation_id: int) -> list[str]:
    policy = current_policy(organisation_id)
    judge = store.agent_of(policy, agent_id)
    rows = Contract.objects.filter(organisation_id=organisation_id, state=State.REVIEW)
    return [
        scope
        for row in rows.exclude(workspace_scope=[]).defer("body")
        if rules.judges(store.facts_of(row, policy), judge, policy) and row.assignee_id != agent_id
        for scope in row.workspace_scope
    ]


def open_contracts_of(agent_id: int) -> QuerySet[Contract]:
    """Contracts that are not closed and have the agent on either side."""
    return Contract.objects.filter(
        Q(issuer_id=agent_id) | Q(assignee_id=agent_id), state__in=OPEN_STATES
    )
