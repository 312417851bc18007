"""Closed sets of the constitution, and its tables of offices and failure signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.language import gettext_noop as _
from orgchart.policy.vocabulary import Office


class State(StrEnum):
    """Where a case is (Spec: constitution 29)."""

    OPEN = "open"
    PAUSED = "paused"
    DELIVERED = "delivered"
    STOPPED = "stopped"


class Stage(StrEnum):
    """The stages in their order; the last is the CONDUCTOR's (Spec: constitution 7)."""

    ANALYSIS = "ANALYSIS"
    TASKS = "TASKS"
    IMPLEMENTATION = "IMPLEMENTATION"
    REVIEW = "REVIEW"
    TEST = "TEST"
    VERDICT = "VERDICT"


class Input(StrEnum):
    """What `case_inputs` can give; OFFICES says to which office (Spec: constitution 5)."""

    REQUEST = "REQUEST"
    ANALYSIS = "ANALYSIS"
    TASKS = "TASKS"
    IMPLEMENTATION = "IMPLEMENTATION"
    VERIFY_BY = "VERIFY_BY"
    ARTIFACTS = "ARTIFACTS"
    REVIEW = "REVIEW"
    TEST = "TEST"
    PROTOCOL = "PROTOCOL"


class Outcome(StrEnum):
    """How a stage ended (Spec: constitution 26)."""

    OK = "OK"
    NON_VERIFIABLE = "NON_VERIFIABLE"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    PASSED = "PASSED"
    FAILED = "FAILED"
    EVIDENCE_UNAVAILABLE = "EVIDENCE_UNAVAILABLE"


class Ruling(StrEnum):
    """What the CONDUCTOR decides (Spec: constitution 28)."""

    CONTINUE = "CONTINUE"
    DELIVER = "DELIVER"
    STOP = "STOP"


class Signal(StrEnum):
    """A failure signal (Spec: constitution 9, 15)."""

    NON_VERIFIABLE = "NON_VERIFIABLE"
    UNVERIFIABLE_TASK = "UNVERIFIABLE_TASK"
    UNAUTHORISED_CHANGE = "UNAUTHORISED_CHANGE"
    REJECTED = "REJECTED"
    TEST_FAILED = "TEST_FAILED"
    EVIDENCE_UNAVAILABLE = "EVIDENCE_UNAVAILABLE"
    ITERATION_OVERFLOW = "ITERATION_OVERFLOW"
    STRUCTURAL_VIOLATION = "STRUCTURAL_VIOLATION"


class Fault(StrEnum):
    """Why an attempt is a structural violation (Spec: constitution 14)."""

    EXCEEDED_AUTHORITY = "EXCEEDED_AUTHORITY"
    OVERLAPPING_DUTIES = "OVERLAPPING_DUTIES"
    ILLEGAL_INPUT = "ILLEGAL_INPUT"


MEANINGS: Mapping[str, str] = {
    Signal.NON_VERIFIABLE: _("The request cannot be verified"),
    Signal.UNVERIFIABLE_TASK: _("A task cannot be verified"),
    Signal.UNAUTHORISED_CHANGE: _("A change that no task asks for"),
    Signal.REJECTED: _("The review rejected the work"),
    Signal.TEST_FAILED: _("A test failed"),
    Signal.EVIDENCE_UNAVAILABLE: _("Evidence is missing"),
    Signal.ITERATION_OVERFLOW: _("All rounds are used up"),
    Signal.STRUCTURAL_VIOLATION: _("An agent acted outside its office"),
    Fault.EXCEEDED_AUTHORITY: _("It went beyond its office"),
    Fault.OVERLAPPING_DUTIES: _("It acted in two offices"),
    Fault.ILLEGAL_INPUT: _("It asked for an input that it may not read"),
}
"""Failure signals and faults as people read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charter:
    """What one office may do: its stage, its legal inputs and the outcomes of its stage."""

    stage: Stage
    inputs: tuple[Input, ...]
    outcomes: tuple[Outcome, ...] = ()


OFFICES: Mapping[Office, Charter] = {
    Office.ANALYST: Charter(
        stage=Stage.ANALYSIS,
        inputs=(Input.REQUEST,),
        outcomes=(Outcome.OK, Outcome.NON_VERIFIABLE),
    ),
    Office.PLANNER: Charter(
        stage=Stage.TASKS,
        inputs=(Input.ANALYSIS,),
        outcomes=(Outcome.OK,),
    ),
    Office.IMPLEMENTER: Charter(
        stage=Stage.IMPLEMENTATION,
        inputs=(Input.TASKS,),
        outcomes=(Outcome.OK,),
    ),
    Office.REVIEWER: Charter(
        stage=Stage.REVIEW,
        inputs=(Input.TASKS, Input.IMPLEMENTATION),
        outcomes=(Outcome.APPROVED, Outcome.REJECTED),
    ),
    Office.TESTER: Charter(
        stage=Stage.TEST,
        inputs=(Input.VERIFY_BY, Input.ARTIFACTS),
        outcomes=(Outcome.PASSED, Outcome.FAILED, Outcome.EVIDENCE_UNAVAILABLE),
    ),
    Office.CONDUCTOR: Charter(
        stage=Stage.VERDICT,
        inputs=(Input.REVIEW, Input.TEST, Input.PROTOCOL),
    ),
}
"""The one table of offices (Spec: constitution 2 to 7, 26)."""

OFFICE_OF: Mapping[Stage, Office] = {each.stage: office for office, each in OFFICES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What a failure signal does: a new round, a pause for people, a REVIEW that must reject."""

    office: str
    new_round: bool = False
    pauses: bool = False
    must_reject: bool = False
    lifted_by: str = ""


SIGNALS: Mapping[Signal, Consequence] = {
    Signal.NON_VERIFIABLE: Consequence(
        office="Analyst", pauses=True, lifted_by="an amended ANALYSIS"
    ),
    Signal.UNVERIFIABLE_TASK: Consequence(office="Planner", must_reject=True),
    Signal.UNAUTHORISED_CHANGE: Consequence(office="Implementer", must_reject=True),
    Signal.REJECTED: Consequence(office="Reviewer", new_round=True),
    Signal.TEST_FAILED: Consequence(office="Tester", new_round=True),
    Signal.EVIDENCE_UNAVAILABLE: Consequence(
        office="Tester",
        new_round=True,
        pauses=True,
        lifted_by="amended ANALYSIS or TASKS, or HUMAN_ADMIN extending the case",
    ),
    Signal.ITERATION_OVERFLOW: Consequence(
        office="CONDUCTOR",
        pauses=True,
        lifted_by="HUMAN_ADMIN extending the rounds, or overruling the REVIEW",
    ),
    Signal.STRUCTURAL_VIOLATION: Consequence(
        office="any", new_round=True, pauses=True, lifted_by="HUMAN_ADMIN extending the case"
    ),
}
"""The one table of failure signals (Spec: constitution 9, 12 to 15)."""

SIGNAL_OF: Mapping[Outcome, Signal] = {
    Outcome.NON_VERIFIABLE: Signal.NON_VERIFIABLE,
    Outcome.REJECTED: Signal.REJECTED,
    Outcome.FAILED: Signal.TEST_FAILED,
    Outcome.EVIDENCE_UNAVAILABLE: Signal.EVIDENCE_UNAVAILABLE,
}
"""The outcomes that are failure signals; every other outcome goes on to the next stage."""
