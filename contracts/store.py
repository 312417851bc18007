"""Contracts as rows: found for a caller, locked, moved with their event in one statement."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from contracts import rules
from contracts.models import Contract, Report, Verdict
from contracts.rules import Facts
from contracts.vocabulary import ContractKind, Finding, ReportKind, State
from core.actions import Action
from core.actors import Actor
from core.decision import Denied
from core.events import Event
from core.machines import Cte, Swap, swap
from ledger import sql as ledger_sql
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import ToolMode
from toolbox.caller import Caller
from toolbox.sessions import close_mode
from toolbox.wake import wake

MUTABLE = (
    "issuer_id", "issuer_name", "accepted_at", "submitted_at", "closed_at", "closed_by",
    "closed_reason", "used_at",
)  # fmt: skip
"""Columns that change after a contract is issued, besides its state and version."""


def agent_of(policy: Policy, agent_id: int) -> Agent:
    """An agent of the organisation, also one that came after this policy was compiled."""
    found = policy.by_id.get(agent_id)
    return found or current_policy(policy.organisation_id).by_id[agent_id]


def facts_of(row: Contract, policy: Policy, finding: Finding | None = None) -> Facts:
    """The row as rules see it."""
    return Facts(
        id=row.id,
        kind=ContractKind(row.kind),
        state=State(row.state),
        version=row.version,
        issuer=agent_of(policy, row.issuer_id) if row.issuer_id else None,
        assignee=agent_of(policy, row.assignee_id),
        workspace_scope=tuple(row.workspace_scope),
        finding=finding,
        environment=row.environment,
        artifact=row.artifact,
        expires_at=row.expires_at,
        used_at=row.used_at,
    )


def find(contract_id: str, organisation_id: int, *, lock: bool = False) -> Contract:
    """The organisation's contract. Raises Denied NOT_FOUND, the same for another's."""
    rows = Contract.objects.select_for_update(no_key=True) if lock else Contract.objects.all()
    row = rows.filter(id=contract_id, organisation_id=organisation_id).first()
    if row is None:
        raise Denied(rules.not_found())
    return row


def locked(contract_id: str, caller: Caller) -> tuple[Contract, Facts]:
    """A contract that the caller may see, held until the transaction ends.

    Raises Denied NOT_FOUND, the same for what does not exist and for what is not the caller's.
    """
    row = find(contract_id, caller.organisation_id, lock=True)
    contract = facts_of(row, caller.policy)
    caller.require(rules.can_see(contract, caller.agent, caller.policy))
    return row, contract


def latest_finding(row: Contract) -> Finding | None:
    """The newest verdict on the work handed in."""
    found = Verdict.objects.filter(contract_id=row.id).order_by("-id").first()
    return Finding(found.finding) if found else None


def completion_of(row: Contract) -> Report:
    """The report that handed the work in; a contract in review that can be judged has one."""
    return Report.objects.get(contract_id=row.id, kind=ReportKind.COMPLETION)


def advance(
    row: Contract,
    was: Facts,
    action: Action,
    *,
    caller: Actor,
    now: datetime,
    tell: Agent | None,
    reason: str = "",
    **details: Any,
) -> None:
    """Write a moved row and its event in one statement, if the row still is what was decided on.

    `tell` sees the event in its stream. The row carries its next version afterwards.
    """
    event = Event.by(
        caller,
        action,
        at=now,
        subject=f"contract:{row.id}",
        reason=reason,
        for_agent_id=tell.id if tell else None,
        kind="contract",
        details={
            "from_state": str(was.state),
            "state": str(row.state),
            "version": was.version + 1,
            **details,
        },
    )
    saved = swap(
        Swap(
            model=Contract,
            key=row.id,
            version=was.version,
            state=None if row.state == was.state else ("state", was.state, row.state),
            values={name: getattr(row, name) for name in MUTABLE},
        ),
        then=[Cte("event", ledger_sql.insert("ev", "swapped"), ledger_sql.params(event))],
    )
    if not saved:
        raise Denied(rules.stale(row.id, was.version, find_version(row.id)))
    row.version = was.version + 1
    wake(tell.id if tell else None)


def find_version(contract_id: str) -> int:
    """The version as committed now."""
    return Contract.objects.values_list("version", flat=True).get(id=contract_id)


def end_mode(row: Contract, was: Facts, caller: Actor, now: datetime) -> None:
    """Close the sessions' mode that a contract opened, once it leaves in_progress."""
    if row.mode != ToolMode.CHAT_SAFE and was.state is State.IN_PROGRESS:
        close_mode(caller=caller, now=now, reason=f"{row.id} is {row.state}", contract_ref=row.id)


def result_of(row: Contract) -> dict[str, Any]:
    """What every move answers (wire)."""
    return {"state": str(row.state), "version": row.version}
