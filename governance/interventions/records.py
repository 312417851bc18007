"""Inserting interventions: the one table of a company, whatever was intervened in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.actors import Person
from core.database import needs_transaction
from core.interventions import InterventionFacts
from core.people import require_still
from governance.interventions.models import Intervention
from governance.interventions.vocabulary import HumanOffice, operator_role


@needs_transaction
def insert_intervention(
    person: Person,
    facts: InterventionFacts,
    *,
    case_id: str | None = None,
    details: Mapping[str, Any] | None = None,
    confirmed: bool = False,
) -> Intervention:
    """Insert what a person did and why, in the transaction of its effect.

    What lower rooms report with `core.interventions` comes here too. Raises Denied NOT_YOURS where
    a right of the person has ended meanwhile (Spec: people 68).
    """
    require_still(person)
    role = operator_role(person.groups, facts["deed"]) or HumanOffice.ADMIN
    return Intervention.objects.create(
        organisation_id=person.organisation_id or None,
        case_id=case_id,
        subject=facts["subject"],
        timestamp=facts["now"],
        operator=person.username,
        operator_role=role.value,
        trigger_condition=facts["trigger_condition"],
        action_taken=facts["action_taken"],
        reason=facts["reason"].strip(),
        details=dict(details or {}),
        confirmed=confirmed,
    )
