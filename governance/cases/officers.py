"""Which agent acts in which office of a case: kept at its first act (Spec: constitution 37)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from core.database import needs_transaction
from governance.cases.facts import CaseFacts
from governance.cases.models import Case, CaseOfficer
from orgchart.policy.vocabulary import Office


def acted_in(case_id: str, organisation_id: int) -> frozenset[tuple[int, Office]]:
    """Everyone who acted in a case, by office."""
    rows = CaseOfficer.objects.filter(organisation_id=organisation_id, case_id=case_id)
    return frozenset((each.agent_id, Office(each.office)) for each in rows)


def offices_of(agent_id: int, cases: Collection[Case], organisation_id: int) -> dict[str, Office]:
    """The office in which an agent acted, of each of these cases in which it did."""
    rows = CaseOfficer.objects.filter(
        organisation_id=organisation_id, agent_id=agent_id, case__in=cases
    )
    return {each.case_id: Office(each.office) for each in rows}


@needs_transaction
def insert_officer(row: Case, agent_id: int, office: Office, now: datetime) -> None:
    """Keep in which office an agent acts in a case."""
    CaseOfficer.objects.create(
        organisation_id=row.organisation_id,
        case=row,
        agent_id=agent_id,
        office=office.value,
        since=now,
    )


@needs_transaction
def keep_officer(row: Case, case: CaseFacts, agent_id: int, office: Office, now: datetime) -> None:
    """As `insert_officer`, of a locked case in which the agent may have acted before."""
    if (agent_id, office) not in case.record.acted:
        insert_officer(row, agent_id, office, now)
