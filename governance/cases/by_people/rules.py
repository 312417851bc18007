"""Pure decisions about people: who may take which action on a case, and when."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from core.decision import Allow, Code, Decision, deny
from governance.cases.by_people.vocabulary import DEED_OF, WITH_CODE, CaseAction
from governance.cases.facts import FINAL, CaseFacts, Next, Position
from governance.cases.moves import Move
from governance.cases.rules import MOST_ROUNDS, after_signal
from governance.cases.vocabulary import Outcome, Signal, Stage, State
from governance.interventions.vocabulary import HumanOffice, operator_role

LIFTED_BY_AMENDING = {
    Stage.ANALYSIS: (Signal.NON_VERIFIABLE, Signal.EVIDENCE_UNAVAILABLE),
    Stage.TASKS: (Signal.EVIDENCE_UNAVAILABLE,),
}
"""The stops that an amended stage ends; the others need HUMAN_ADMIN."""
MOST_AMENDMENTS = 50
"""How often a case is amended: its page shows each of them, and each call of an office reads them.
"""


def needs_code(groups: Collection[str], action: CaseAction) -> bool:
    """Whether a person of these groups needs a confirmation code (Spec: constitution 20)."""
    admin = operator_role(groups, DEED_OF[action]) is HumanOffice.ADMIN
    return admin and action in WITH_CODE


def can_amend(case: CaseFacts, stage: Stage) -> Decision:
    """Decide whether a stage may be amended now (Spec: constitution 16, 18, 22)."""
    if stage not in LIFTED_BY_AMENDING:
        return deny(
            Code.STAGE_DENIED,
            f"no person changes {stage}",
            "amend ANALYSIS or TASKS; the next round brings a new IMPLEMENTATION",
            rule="constitution: what people may not do",
        )
    if case.at.state is not State.PAUSED:
        return _not_now("only a paused case is amended", "wait until the case pauses")
    if stage not in case.record.submitted:
        return _not_now(f"there is no {stage} to amend", "let its office submit it first")
    if case.record.amendments >= MOST_AMENDMENTS:
        return _not_now(
            f"a case is amended {MOST_AMENDMENTS} times at most", "extend or end the case"
        )
    return Allow("constitution: people amend ANALYSIS and TASKS")


def after_amendment(case: CaseFacts, stage: Stage) -> Next:
    """The stages after an amended one run again, once nothing else stops the case.

    A violation during the pause does: HUMAN_ADMIN decides (Spec: constitution 38).
    """
    at = case.at
    if at.paused_by not in LIFTED_BY_AMENDING[stage] or at.round > at.max_rounds:
        return Next(Move.AMEND, at)
    to = Stage.TASKS if stage is Stage.ANALYSIS else Stage.IMPLEMENTATION
    if to is Stage.IMPLEMENTATION and Stage.ANALYSIS not in case.record.in_force:
        return Next(Move.AMEND, at)
    if case.record.violated:
        return Next(Move.AMEND, replace(at, paused_by=Signal.STRUCTURAL_VIOLATION))
    opened = replace(at, state=State.OPEN, stage=to, failed_by=None, paused_by=None)
    return Next(Move.AMEND, opened)


def can_overrule(case: CaseFacts, to: Outcome) -> Decision:
    """Decide whether the REVIEW may be overruled now (Spec: constitution 18, 19).

    What a REVIEW said can be overruled once, never that it took place.
    """
    at, record = case.at, case.record
    if record.review is None or at.state in FINAL:
        return _not_now("no REVIEW is in force", "wait for the REVIEW of this round")
    if record.overruled:
        return _not_now("this REVIEW was overruled already", "end the case or let it go on")
    if to is Outcome.REJECTED:
        return _can_turn_down(case)
    return _can_approve(case, to)


def _can_approve(case: CaseFacts, to: Outcome) -> Decision:
    at, record = case.at, case.record
    if to is not Outcome.APPROVED or record.review is not Outcome.REJECTED:
        return _not_now(f"the REVIEW is {record.review}", "choose the other outcome")
    if at.failed_by is not Signal.REJECTED or record.amended:
        return _not_now("the REVIEW is no longer what the case waits on", "extend or end the case")
    if record.must_reject:
        signals = ", ".join(sorted(record.must_reject))
        return _not_now(
            f"a failure signal obliges the REVIEW to reject: {signals}",
            "amend TASKS, or let the next round bring another IMPLEMENTATION",
        )
    return Allow("constitution: HUMAN_ADMIN overrules a REVIEW")


def _can_turn_down(case: CaseFacts) -> Decision:
    if case.record.review is not Outcome.APPROVED:
        return _not_now(f"the REVIEW is {case.record.review}", "choose the other outcome")
    if case.at.state is not State.OPEN or case.at.failed_by is not None:
        return _not_now("this round has ended", "extend or end the case")
    return Allow("constitution: HUMAN_ADMIN overrules a REVIEW")


def after_overruling(at: Position, to: Outcome) -> Next:
    """A REVIEW overruled to APPROVED goes on to TEST in its own round; to REJECTED, it ends it."""
    if to is Outcome.REJECTED:
        return after_signal(at, Signal.REJECTED, Move.OVERRULE_TO_REJECTED)
    reopened = replace(
        at,
        state=State.OPEN,
        stage=Stage.TEST,
        round=at.ruled_round,
        failed_by=None,
        paused_by=None,
    )
    return Next(Move.OVERRULE_TO_APPROVED, reopened)


def can_extend(at: Position, rounds: int) -> Decision:
    """Decide whether a paused case may get more rounds and go to the CONDUCTOR again."""
    if at.state is not State.PAUSED:
        return _not_now("only a paused case is extended", "wait until the case pauses")
    if at.paused_by is Signal.NON_VERIFIABLE:
        return _not_now("what cannot be verified is not continued", "amend ANALYSIS, or end it")
    if at.round > at.max_rounds + rounds or at.max_rounds + rounds > MOST_ROUNDS:
        return _not_now(
            f"round {at.round} of {at.max_rounds} needs {at.round - at.max_rounds} more, and "
            f"a case has {MOST_ROUNDS} at most",
            "give that many rounds, or end the case",
        )
    return Allow("constitution: HUMAN_ADMIN extends a case")


def after_extension(at: Position, rounds: int) -> Next:
    """The case is open again and the CONDUCTOR rules whether it goes on."""
    return Next(
        Move.EXTEND,
        replace(at, state=State.OPEN, max_rounds=at.max_rounds + rounds, paused_by=None),
    )


def can_end(at: Position) -> Decision:
    """Decide whether HUMAN_ADMIN may end the case (Spec: constitution 17)."""
    if at.state in FINAL:
        return _not_now("the case has ended", "leave a note instead")
    return Allow("constitution: HUMAN_ADMIN ends a case")


def after_end(at: Position) -> Next:
    """The case is stopped where it is."""
    return Next(Move.END, replace(at, state=State.STOPPED))


def _not_now(message: str, next_action: str) -> Decision:
    return deny(
        Code.INVALID_TRANSITION, message, next_action, rule="constitution: human intervention"
    )
