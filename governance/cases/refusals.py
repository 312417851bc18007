"""Pure table of refusals: what each one says, and which are structural violations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.decision import Code, Deny
from governance.cases.vocabulary import Fault


class Situation(StrEnum):
    """Why an act in a case is refused; the `rule` of every refusal."""

    OTHER_STAGE = "constitution: the stage belongs to another office"
    BEFORE_ITS_STAGE = "constitution: it is not the turn of this stage"
    SECOND_AUTHOR = "constitution: the stage has its author"
    SECOND_OFFICE = "constitution: one agent acts in one office of a case"
    OTHER_RULING = "constitution: only the CONDUCTOR rules"
    RULING_TOO_EARLY = "constitution: the CONDUCTOR rules at the verdict"
    ILLEGAL_INPUT = "constitution: legal inputs"
    OPENED_BY_OTHER = "constitution: the Analyst's office opens a case"
    OFFICE_VACANT = "constitution: all six offices are held (spec: constitution 33)"
    SUBMITTED_ALREADY = "constitution: a stage is submitted once in a round"
    TURNED_DOWN = "constitution: an overruled REVIEW ends the round"
    PAUSED = "constitution: a paused case waits for a person"
    FINAL = "constitution: delivered and stopped are final"
    NOT_DELIVERABLE = "constitution: a delivery needs REVIEW approved and TEST passed"
    NOTHING_FAILED = "constitution: only a failed round is followed by another"
    MUST_REJECT = "constitution: failure signals"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a situation is answered with; with a fault it is a structural violation."""

    code: Code
    fault: Fault | None
    message: str
    next_action: str


WAIT = "call case_list and act when your_turn is true"
REFUSALS: Mapping[Situation, Refusal] = {
    Situation.OTHER_STAGE: Refusal(
        Code.STAGE_DENIED, Fault.EXCEEDED_AUTHORITY, "this stage belongs to another office", WAIT
    ),
    Situation.BEFORE_ITS_STAGE: Refusal(
        Code.STAGE_DENIED, Fault.EXCEEDED_AUTHORITY, "it is not the turn of your stage", WAIT
    ),
    Situation.SECOND_AUTHOR: Refusal(
        Code.STAGE_DENIED,
        Fault.OVERLAPPING_DUTIES,
        "another agent of your office submitted this stage",
        WAIT,
    ),
    Situation.SECOND_OFFICE: Refusal(
        Code.STAGE_DENIED,
        Fault.OVERLAPPING_DUTIES,
        "you acted in another office of this case",
        "leave this stage to another agent of the office",
    ),
    Situation.OTHER_RULING: Refusal(
        Code.STAGE_DENIED, Fault.EXCEEDED_AUTHORITY, "only the CONDUCTOR rules on a case", WAIT
    ),
    Situation.RULING_TOO_EARLY: Refusal(
        Code.STAGE_DENIED,
        Fault.EXCEEDED_AUTHORITY,
        "the CONDUCTOR rules at the stage VERDICT only",
        WAIT,
    ),
    Situation.ILLEGAL_INPUT: Refusal(
        Code.INPUT_DENIED,
        Fault.ILLEGAL_INPUT,
        "your office may not see this input",
        "call case_inputs without names: it gives everything your office may see",
    ),
    Situation.OPENED_BY_OTHER: Refusal(
        Code.STAGE_DENIED, None, "only the Analyst's office opens a case", WAIT
    ),
    Situation.OFFICE_VACANT: Refusal(
        Code.INVALID_TRANSITION,
        None,
        "no active agent holds these offices",
        "try again when people have given each office to an active agent",
    ),
    Situation.SUBMITTED_ALREADY: Refusal(
        Code.STAGE_DENIED, None, "you submitted this stage already; it was kept", WAIT
    ),
    Situation.TURNED_DOWN: Refusal(
        Code.INVALID_TRANSITION,
        None,
        "a person rejected what was to be tested while it was your turn",
        WAIT,
    ),
    Situation.PAUSED: Refusal(
        Code.INVALID_TRANSITION,
        None,
        "the case is paused and waits for a person",
        "wait for a person; the CONDUCTOR may stop the case",
    ),
    Situation.FINAL: Refusal(
        Code.INVALID_TRANSITION, None, "the case has ended", "call case_list for open cases"
    ),
    Situation.NOT_DELIVERABLE: Refusal(
        Code.INVALID_TRANSITION,
        None,
        "this round has no REVIEW approved and TEST passed with evidence",
        "decide CONTINUE or STOP",
    ),
    Situation.NOTHING_FAILED: Refusal(
        Code.INVALID_TRANSITION,
        None,
        "nothing failed in this round, so no round follows it",
        "decide DELIVER or STOP",
    ),
    Situation.MUST_REJECT: Refusal(
        Code.INVALID_TRANSITION,
        None,
        "a failure signal obliges the REVIEW to reject",
        "submit REVIEW with the outcome REJECTED",
    ),
}
"""The one table of refusals: which are structural violations and which are plain mistakes."""


def refusal(situation: Situation, detail: str = "") -> Deny:
    """The Deny of a situation, with a detail that holds no content of the case."""
    row = REFUSALS[situation]
    message = f"{row.message}: {detail}" if detail else row.message
    return Deny(row.code, message, row.next_action, situation.value)


def fault_of(deny: Deny) -> Fault | None:
    """The structural violation that a refusal is, or None."""
    return next((row.fault for each, row in REFUSALS.items() if each.value == deny.rule), None)
