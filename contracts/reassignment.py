"""Reassigning the open contracts of a deactivated agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts.models import Contract
from contracts.store import agent_of, contract_facts, save_contract, writers_of_terms
from contracts.vocabulary import OPEN_STATES
from core.actions import Action
from core.actors import Actor
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
