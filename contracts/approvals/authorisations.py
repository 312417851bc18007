"""Contracts that authorise their assignee to change the organisation."""

from __future__ import annotations

from django.db import connection

from contracts.models import Contract
from contracts.vocabulary import ContractKind, ContractState
from core.database import needs_transaction
from core.decision import Code, refuse
from toolbox.caller import Caller


def active_authorisation(
    *, organisation_id: int, assignee_id: int, kind: ContractKind
) -> Contract | None:
    """The agent's newest authorisation of this kind in progress, if any.

    In a transaction it is locked: it cannot be closed before that transaction ends.
    """
    rows = Contract.objects.filter(
        organisation_id=organisation_id,
        assignee_id=assignee_id,
        kind=kind,
        state=ContractState.IN_PROGRESS,
    ).order_by("-id")
    if connection.in_atomic_block:
        rows = rows.select_for_update(no_key=True)
    return rows.first()


@needs_transaction
def require_authorisation(*, caller: Caller, kind: ContractKind) -> Contract:
    """The caller's authorisation of this kind in progress, locked until the transaction ends.

    Raises Denied AUTHORISATION_REQUIRED (seed 000 §1.4).
    """
    found = active_authorisation(
        organisation_id=caller.organisation_id, assignee_id=caller.agent.id, kind=kind
    )
    if found is None:
        raise refuse(
            Code.AUTHORISATION_REQUIRED,
            f"{caller.tool or 'this'} needs a contract of kind {kind} in progress",
            f"accept one (list_contracts shows yours), or ask {caller.agent.superior} for one",
            rule=f"{kind} authorises it (seed 000 §1.4)",
        )
    return found
