"""What becomes of the open contracts of an agent that leaves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts import store
from contracts.models import Contract
from contracts.vocabulary import OPEN_STATES
from core.actions import Action
from core.actors import Actor
from mailroom.delivery import send_system_mail
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD

LISTED = 50


@dataclass(frozen=True, slots=True)
class Held:
    """The open contracts that an agent leaves: those it worked on, and those it had issued."""

    assigned: tuple[str, ...]
    issued: tuple[str, ...]


def hand_over(*, caller: Actor, leaver: Agent, successor: Agent | None, now: datetime) -> Held:
    """Hand an agent's open contracts to its superior; `successor` None: the Board.

    What it issued is the successor's to close from now on. What it worked on stays as it is, and
    its issuer is told, who cancels it and issues another. In the transaction of the deactivation.
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
            if row.issuer_id and successor is not None:
                _tell(successor, f"You now answer for a contract of {leaver.handle}", [row], now)
        for issuer_id in sorted({row.issuer_id for row in assigned if row.issuer_id}):
            issuer = store.agent_of(policy, issuer_id)
            theirs = [row for row in assigned if row.issuer_id == issuer_id]
            if issuer.active:
                _tell(issuer, f"{leaver.handle} leaves open contracts of yours", theirs, now)
    return Held(tuple(r.id for r in assigned), tuple(r.id for r in issued))


def _reissue(
    row: Contract, caller: Actor, successor: Agent | None, policy: Policy, now: datetime
) -> None:
    was = store.facts_of(row, policy)
    heir = None if successor is None or successor.id == row.assignee_id else successor
    row.issuer_id = heir.id if heir else None
    row.issuer_name = heir.handle if heir else BOARD
    store.advance(
        row,
        was,
        Action.CONTRACT_HANDED_OVER,
        caller=caller,
        now=now,
        tell=heir,
        issuer=row.issuer_name,
    )


def _tell(agent: Agent, subject: str, rows: list[Contract], now: datetime) -> None:
    listed = "\n".join(f"- {r.id} {r.state}: {r.title}" for r in rows[:LISTED])
    send_system_mail(
        organisation_id=rows[0].organisation_id,
        recipient=agent,
        subject=subject,
        body=f"Open contracts ({len(rows)}):\n{listed}",
        now=now,
        contract_ref=rows[0].id if len(rows) == 1 else "",
    )
