"""Reassigning the open contracts of an agent that is deactivated, or issues no more contracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts.issuing.rules import ISSUING_TOOLS
from contracts.models import Contract
from contracts.store import (
    agent_of,
    contract_facts,
    latest_submission,
    save_contract,
    writers_of_terms,
)
from contracts.vocabulary import OPEN_STATES, ContractKind
from core.actions import Action
from core.actors import Actor
from documents.rules import is_denied_to, reports_folder
from mailroom.delivery import send_system_mail
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import BOARD_PARTY, Party
from orgchart.policy_cache import current_policy
from toolbox.quoting import one_line

LISTED = 50


@dataclass(frozen=True, slots=True)
class OpenContracts:
    """The ids of an agent's open contracts: those it worked on, and those it issued."""

    assigned: tuple[str, ...]
    issued: tuple[str, ...]


def reassign_contracts(
    *, caller: Actor, leaver: Agent, successor: Party, now: datetime
) -> OpenContracts:
    """Reassign an agent's open contracts to its superior.

    The successor becomes the issuer of what the agent issued. What the agent worked on stays as it
    is; its issuer is notified, and may cancel it and issue another.
    """
    with transaction.atomic():
        policy = current_policy(caller.organisation_id)
        rows = Contract.objects.select_for_update(no_key=True).filter(
            organisation_id=caller.organisation_id, state__in=OPEN_STATES
        )
        issued = list(rows.filter(issuer_id=leaver.id).order_by("id"))
        for row in issued:
            _reissue(row, caller, successor, policy, now)
        assigned = list(rows.filter(assignee_id=leaver.id).order_by("id"))
        for row in issued:
            if row.issuer_id and isinstance(successor, Agent):
                subject = f"You are now the issuer of a contract of {leaver.handle}"
                _notify(successor, subject, [row], now)
        for issuer_id in sorted({row.issuer_id for row in assigned if row.issuer_id}):
            issuer = agent_of(policy, issuer_id)
            theirs = [row for row in assigned if row.issuer_id == issuer_id]
            if issuer.active:
                _notify(issuer, f"{leaver.handle} leaves open contracts of yours", theirs, now)
    return OpenContracts(tuple(r.id for r in assigned), tuple(r.id for r in issued))


def hand_over_contracts(agent_ids: Sequence[int], caller: Actor, now: datetime) -> None:
    """Let open contracts go on without an issuer whose new role issues none (Spec: contracts 52).

    Each goes to the nearest agent above its assignee that gave no verdict on it: a leader that was
    replaced closes nothing of those that it led. Runs in the transaction of the change.
    """
    issued = Contract.objects.select_for_update(no_key=True).filter(
        issuer_id__in=agent_ids, state__in=OPEN_STATES
    )
    rows = list(issued.order_by("id"))
    if not rows:
        return
    policy = current_policy(rows[0].organisation_id)
    gained: dict[int, list[Contract]] = {}
    for row in rows:
        issuer = agent_of(policy, row.issuer_id or 0)
        role = policy.role_of(issuer)
        if ISSUING_TOOLS.isdisjoint(role.tools - role.denied_tools):
            successor = _above_assignee(row, issuer, policy)
            if isinstance(successor, Agent):
                gained.setdefault(successor.id, []).append(row)
            elif row.kind == ContractKind.DEPLOYMENT_APPROVAL:
                continue  # it names an agent, and ends by itself
            _reissue(row, caller, successor, policy, now)
    for agent_id, theirs in gained.items():
        subject = "You are now the issuer of contracts of an agent that issues no more"
        _notify(agent_of(policy, agent_id), subject, theirs, now)


def _above_assignee(row: Contract, issuer: Agent, policy: Policy) -> Party:
    """Nor does it go to one that is denied the folder of its reports (Spec: contracts 56)."""
    submission = latest_submission(row)
    left_out = {issuer.id, *(submission.judges if submission else ())}
    folder = reports_folder(row.department)
    above = policy.chain_above(agent_of(policy, row.assignee_id))
    able = (
        one for one in above if one.id not in left_out and not is_denied_to(folder, one, policy)
    )
    return next(able, BOARD_PARTY)


def _reissue(row: Contract, caller: Actor, successor: Party, policy: Policy, now: datetime) -> None:
    was = contract_facts(row, policy)
    issuer = BOARD_PARTY if successor.id == row.assignee_id else successor
    row.issuer_id, row.issuer_name = issuer.id, issuer.handle
    save_contract(
        row,
        was,
        Action.CONTRACT_HANDED_OVER,
        caller=caller,
        now=now,
        reader=issuer,
        issuer=row.issuer_name,
    )


def _notify(agent: Agent, subject: str, rows: list[Contract], now: datetime) -> None:
    listed = "\n".join(f"- {r.id} {r.state}: {one_line(r.title)}" for r in rows[:LISTED])
    send_system_mail(
        organisation_id=rows[0].organisation_id,
        recipient=agent,
        subject=subject,
        body=f"Open contracts ({len(rows)}):\n{listed}",
        quotes=writers_of_terms(*(row.id for row in rows[:LISTED])),
        now=now,
        contract_ref=rows[0].id if len(rows) == 1 else "",
    )
