"""Changes of the organisation that contracts authorise: each named line is used once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from contracts.issuing.changes import NamedChange, SoughtLine
from contracts.models import Contract, OrgChangeLine
from contracts.vocabulary import ContractKind, ContractState, OrgAct
from core.database import needs_transaction
from core.decision import Code, refuse
from orgchart.models import Organisation
from orgchart.pauses.services import is_paused
from toolbox.caller import Caller


@needs_transaction
def use_change(*, caller: Caller, sought: SoughtLine, now: datetime) -> str:
    """Use up the line of the caller's org_change contracts that names this change; the contract.

    The contract cannot be closed before the transaction ends; if it is rolled back the line can be
    used again. The organisation is locked first, as where a person deactivates the caller, so that
    the two never wait for each other. Raises Denied AUTHORISATION_REQUIRED where no
    unused line of a contract in progress that has not expired names this act and this subject
    (Spec: contracts 14).
    """
    Organisation.objects.select_for_update(no_key=True).get(id=caller.organisation_id)
    held = Contract.objects.select_for_update(no_key=True).filter(
        organisation_id=caller.organisation_id,
        assignee_id=caller.agent.id,
        kind=ContractKind.ORG_CHANGE,
        state=ContractState.IN_PROGRESS,
        expires_at__gt=now,
    )
    ids = [row.id for row in held.order_by("id")]
    line = use_line(contract_ids=ids, sought=sought, now=now)
    if line is None:
        raise refuse(
            Code.AUTHORISATION_REQUIRED,
            f"{caller.tool or 'this'} needs a contract of kind org_change in progress with an "
            f"unused line {sought}",
            "accept a contract that names it (list_contracts with contract_id shows what one "
            f"allows), or ask {caller.agent.superior} for one",
            rule="org_change authorises what it names, once (spec: contracts 14)",
            act=str(sought.act),
            subject=sought.subject[:64],
        )
    return line.contract_id


@needs_transaction
def use_line(
    *, contract_ids: Sequence[str], sought: SoughtLine, now: datetime
) -> OrgChangeLine | None:
    """Use up the first unused line of these locked contracts that names this; None if none does."""
    lines = OrgChangeLine.objects.select_for_update().filter(
        contract_id__in=contract_ids, act=sought.act, subject=sought.subject, used_at=None
    )
    allowing = (
        line
        for line in lines.order_by("-role", "-reports_to", "id")
        if sought.is_allowed_by(_named(line))
    )
    line = next(allowing, None)
    if line is not None:
        line.used_at = now
        line.save(update_fields=["used_at"])
    return line


def _named(line: OrgChangeLine) -> NamedChange:
    return NamedChange(
        OrgAct(line.act),
        line.subject,
        line.role,
        line.reports_to,
        tuple(line.co_managers),
        tuple(line.skills),
        line.group,
        line.leads,
    )


@needs_transaction
def lock_org_change(*, contract_id: str, organisation_id: int, now: datetime) -> int:
    """Lock an org_change contract that authorises now; the id of its assignee, who can act.

    It is not waited for: a person is told at once that somebody acts on it. Raises Denied
    AUTHORISATION_REQUIRED, also where the assignee is deactivated or paused (Spec: people 34).
    """
    rows = Contract.objects.select_for_update(no_key=True, skip_locked=True, of=("self",)).filter(
        ~is_paused("assignee_id"),
        id=contract_id[:64],
        assignee__active=True,
        organisation_id=organisation_id,
        kind=ContractKind.ORG_CHANGE,
        state=ContractState.IN_PROGRESS,
        expires_at__gt=now,
    )
    row = rows.first()
    if row is None:
        raise refuse(
            Code.AUTHORISATION_REQUIRED,
            f"{contract_id[:64]!r} is no org_change contract in progress that is free at this "
            "moment",
            "name another contract, or leave it out: a second person then confirms the change",
            rule="org_change authorises while it is in progress (spec: contracts 14)",
        )
    return row.assignee_id
