"""Closed sets of human intervention: offices of people, what each may do, and with what proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.people import Desk


class HumanOffice(StrEnum):
    """The `operator_role` of an intervention (Spec: constitution 16)."""

    ADMIN = "HUMAN_ADMIN"
    REVIEWER = "HUMAN_REVIEWER"
    OBSERVER = "HUMAN_OBSERVER"
    HR = "HR"


OFFICE_OF_GROUP: Mapping[str, HumanOffice] = {
    Desk.OBSERVER: HumanOffice.OBSERVER,
    Desk.REVIEWER: HumanOffice.REVIEWER,
    Desk.HR: HumanOffice.HR,
    Desk.BOARD: HumanOffice.ADMIN,
}
"""In the order in which a person of several groups acts: the narrowest office first."""


class Action(StrEnum):
    """What a person does to a case: the `action_taken` of the intervention."""

    OPEN_CASE = "open_case"
    AMEND_ANALYSIS = "amend_analysis"
    AMEND_TASKS = "amend_tasks"
    OVERRULE_REVIEW = "overrule_review"
    EXTEND_ROUNDS = "extend_rounds"
    END_CASE = "end_case"
    ADD_NOTE = "add_note"


@dataclass(frozen=True, slots=True)
class Permit:
    """Which offices may take an action, and which of them need a confirmation code."""

    offices: tuple[HumanOffice, ...]
    with_code: tuple[HumanOffice, ...] = ()


AMENDS = Permit((HumanOffice.REVIEWER, HumanOffice.ADMIN), (HumanOffice.ADMIN,))
STEERS = Permit((HumanOffice.ADMIN,), (HumanOffice.ADMIN,))

PERMITS: Mapping[Action, Permit] = {
    Action.OPEN_CASE: Permit((HumanOffice.ADMIN,)),
    Action.AMEND_ANALYSIS: AMENDS,
    Action.AMEND_TASKS: AMENDS,
    Action.OVERRULE_REVIEW: STEERS,
    Action.EXTEND_ROUNDS: STEERS,
    Action.END_CASE: STEERS,
    Action.ADD_NOTE: Permit((HumanOffice.OBSERVER, HumanOffice.REVIEWER, HumanOffice.ADMIN)),
}
"""The one table of what people may do to a case (Spec: constitution 16, 17).

What is not in it exists for nobody: no action skips REVIEW or TEST, changes an IMPLEMENTATION, or
touches the audit log (Spec: constitution 18).
"""

NOTE_MARK = "[HUMAN_NOTE]"
