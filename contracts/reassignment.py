"""Reassigning the open contracts of an agent that is deactivated, or issues no more contracts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Least

from contracts.issuing.rules import ISSUING_TOOLS
from contracts.models import Contract
from contracts.store import agent_of, event_of_change, judges_of_submissions, writers_of_terms
from contracts.vocabulary import OPEN_STATES, ContractKind
from core.actions import Action
from core.actors import Actor
from core.database import rows_of_array
from core.events import Event
from core.limits import BIGGEST_VERSION
from documents.rules import is_denied_to, reports_folder
from ledger.services import insert_events
from mailroom.delivery import send_system_mail
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import BOARD_PARTY, Party
from orgchart.policy_cache import current_policy
from toolbox.quoting import one_line
from toolbox.wake import wake

LISTED = 50
COLUMNS = (
    "organisation_id", "kind", "state", "version", "title", "department", "issuer_id",
    "issuer_name", "assignee_id",
)  # fmt: skip


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
        rows = _lock_open().filter(organisation_id=caller.organisation_id)
        issued = list(rows.filter(issuer_id=leaver.id))
        _reissue([(row, successor) for row in issued], caller, now)
        assigned = list(rows.filter(assignee_id=leaver.id))
        gained = [row for row in issued if row.issuer_id]
        if gained and isinstance(successor, Agent):
            _notify(
                successor, f"You are now the issuer of contracts of {leaver.handle}", gained, now
            )
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
    rows = list(_lock_open().filter(issuer_id__in=agent_ids))
    if not rows:
        return
    policy = current_policy(rows[0].organisation_id)
    judges = judges_of_submissions(rows)
    reissued: list[tuple[Contract, Party]] = []
    gained: dict[int, list[Contract]] = {}
    for row in rows:
        issuer = agent_of(policy, row.issuer_id or 0)
        role = policy.role_of(issuer)
        if ISSUING_TOOLS.isdisjoint(role.tools - role.denied_tools):
            left_out = {issuer.id, *judges.get(row.id, ())}
            successor = _above_assignee(row, left_out, policy)
            if isinstance(successor, Agent):
                gained.setdefault(successor.id, []).append(row)
            elif row.kind == ContractKind.DEPLOYMENT_APPROVAL:
                continue  # it names an agent, and ends by itself
            reissued.append((row, successor))
    _reissue(reissued, caller, now)
    for agent_id, theirs in gained.items():
        subject = "You are now the issuer of contracts of an agent that issues no more"
        _notify(agent_of(policy, agent_id), subject, theirs, now)


def _above_assignee(row: Contract, left_out: Collection[int], policy: Policy) -> Party:
    """Nor does it go to one that is denied the folder of its reports (Spec: contracts 56)."""
    folder = reports_folder(row.department)
    above = policy.chain_above(agent_of(policy, row.assignee_id))
    able = (
        one for one in above if one.id not in left_out and not is_denied_to(folder, one, policy)
    )
    return next(able, BOARD_PARTY)


def _lock_open() -> QuerySet[Contract]:
    """Open contracts, locked in one order, with the columns that are read here and no long text."""
    rows = Contract.objects.select_for_update(no_key=True).filter(state__in=OPEN_STATES)
    return rows.only(*COLUMNS).order_by("id")


def _reissue(reissued: Sequence[tuple[Contract, Party]], caller: Actor, now: datetime) -> None:
    """Give locked contracts other issuers; the statements do not grow with the contracts.

    The Board gets one that would go to its own assignee.
    """
    of_issuer: dict[tuple[int | None, str], list[str]] = {}
    events: list[Event] = []
    for row, successor in reissued:
        issuer = BOARD_PARTY if successor.id == row.assignee_id else successor
        of_issuer.setdefault((issuer.id, issuer.handle), []).append(row.id)
        row.issuer_id, row.issuer_name = issuer.id, issuer.handle
        row.version = min(row.version + 1, BIGGEST_VERSION)
        event = event_of_change(
            row, Action.CONTRACT_HANDED_OVER, caller=caller, now=now, reader=issuer,
            from_state=row.state, version=row.version, issuer=issuer.handle,
        )  # fmt: skip
        events.append(event)
    for (issuer_id, name), theirs in of_issuer.items():
        Contract.objects.filter(id__in=rows_of_array(theirs, "text")).update(
            issuer=issuer_id, issuer_name=name, version=Least(F("version") + 1, BIGGEST_VERSION)
        )
        wake(issuer_id)
    insert_events(events)


def _notify(agent: Agent, subject: str, rows: list[Contract], now: datetime) -> None:
    listed = "\n".join(f"- {r.id} {r.state}: {one_line(r.title)}" for r in rows[:LISTED])
    more = f"\n… and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
    send_system_mail(
        organisation_id=rows[0].organisation_id,
        recipient=agent,
        subject=subject,
        body=f"Open contracts ({len(rows)}):\n{listed}{more}",
        quotes=writers_of_terms(*(row.id for row in rows[:LISTED])),
        now=now,
        contract_ref=rows[0].id if len(rows) == 1 else "",
    )
