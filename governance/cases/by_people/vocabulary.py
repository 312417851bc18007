"""Closed sets of what people do to cases: the actions, whose each is, and which need a code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from core.permissions import Deed


class CaseAction(StrEnum):
    """What a person does to a case: the `action_taken` of the intervention."""

    AMEND_ANALYSIS = "amend_analysis"
    AMEND_TASKS = "amend_tasks"
    OVERRULE_REVIEW = "overrule_review"
    EXTEND_ROUNDS = "extend_rounds"
    END = "end_case"
    ADD_NOTE = "add_note"


DEED_OF: Mapping[CaseAction, Deed] = {
    CaseAction.AMEND_ANALYSIS: Deed.AMEND_CASE,
    CaseAction.AMEND_TASKS: Deed.AMEND_CASE,
    CaseAction.OVERRULE_REVIEW: Deed.OVERRULE_REVIEW,
    CaseAction.EXTEND_ROUNDS: Deed.EXTEND_CASE,
    CaseAction.END: Deed.END_CASE,
    CaseAction.ADD_NOTE: Deed.ADD_NOTE,
}
"""The deed of each action: who may (Spec: constitution 16, 17).

What is not here exists for no person: no action skips REVIEW or TEST, changes an IMPLEMENTATION,
or touches the audit log (Spec: constitution 18).
"""

WITH_CODE = frozenset(
    {
        CaseAction.AMEND_ANALYSIS,
        CaseAction.AMEND_TASKS,
        CaseAction.OVERRULE_REVIEW,
        CaseAction.EXTEND_ROUNDS,
        CaseAction.END,
    }
)
"""The actions for which HUMAN_ADMIN needs a confirmation code (Spec: constitution 20)."""

NOTE_MARK = "[HUMAN_NOTE]"
