"""Who makes code becomes no judge while the code waits for a verdict (Spec: contracts 57)."""

from __future__ import annotations

from contracts.judging import is_judge, needs_verdict
from contracts.models import Contract
from contracts.store import contract_facts
from contracts.vocabulary import OPEN_STATES
from core.decision import Code, refuse
from orgchart.policy.compiled import Policy


def require_verdicts_kept(before: Policy, after: Policy) -> None:
    """Check that a change of policy makes no open code work the work of a judge.

    That needs no verdict: its issuer could pass it without QA. Raises Denied INVALID_PARAMS.
    """
    judges = [
        agent.id
        for agent in after.agents.values()
        if is_judge(agent, after)
        and (old := before.agents.get(agent.handle)) is not None
        and before.role_of(old) != after.role_of(agent)
    ]
    if not judges:
        return
    rows = Contract.objects.filter(assignee_id__in=judges, state__in=OPEN_STATES)
    for row in rows.defer("body").order_by("id"):
        was, now = contract_facts(row, before), contract_facts(row, after)
        if needs_verdict(was, before) and not needs_verdict(now, after):
            raise refuse(
                Code.INVALID_PARAMS,
                f"{was.assignee.handle} works on {row.id}, which needs QA's verdict; as a judge it "
                "would need none",
                "let the issuer close the contract first",
                rule="who makes code becomes no judge of it (spec: contracts 57)",
                contract=row.id,
            )
