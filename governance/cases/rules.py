"""Pure decisions of the constitution: who may act in a case, and where each act leads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from core.decision import Allow, Code, Decision, deny
from governance.cases.facts import FINAL, CaseFacts, CaseRecord, Next, Officer, Position
from governance.cases.moves import Move
from governance.cases.refusals import Situation, refusal
from governance.cases.vocabulary import (
    OFFICE_OF,
    OFFICES,
    SIGNAL_OF,
    SIGNALS,
    Input,
    Outcome,
    Ruling,
    Signal,
    Stage,
    State,
)
from orgchart.policy.vocabulary import Office

MOST_ROUNDS = 100
MOST_OPENED = 50
"""Cases of one opener that have not ended, or are not an hour old. Each can become a notice to
people, and an end by one of them, who needs a confirmation code for it.
"""


def can_open(who: Officer) -> Decision:
    """Decide whether an agent may open a case (Spec: constitution 23)."""
    if Office.ANALYST in who.offices:
        return Allow("constitution: the Analyst opens a case")
    return refusal(Situation.OPENED_BY_OTHER)


def can_open_another(there: int) -> Decision:
    """Decide whether an agent may open one more case (Spec: constitution 40)."""
    if there < MOST_OPENED:
        return Allow("constitution: few enough cases are open or new (spec: constitution 40)")
    return deny(
        Code.QUOTA_EXCEEDED,
        f"{MOST_OPENED} cases that you opened have not ended or are less than an hour old",
        "wait until some have ended, and an hour has passed; case_list shows them",
        rule="an agent opens so many cases (spec: constitution 40)",
        what="open or new cases of an agent",
        used=there,
        limit=MOST_OPENED,
    )


def can_run_to_end(held: Collection[Office]) -> Decision:
    """Decide whether a case can run to its end: each office is held (Spec: constitution 33)."""
    vacant = [office.value for office in Office if office not in held]
    if vacant:
        return refusal(Situation.OFFICE_VACANT, ", ".join(vacant))
    return Allow("constitution: all six offices are held")


def can_take_turn(  # noqa: PLR0911  one return for each row of the table
    case: CaseFacts, who: Officer, stage: Stage
) -> Decision:
    """Decide whether an agent may submit this stage now (Spec: constitution 7, 8, 14)."""
    office, at, record = OFFICE_OF[stage], case.at, case.record
    if at.state in FINAL:
        return refusal(Situation.FINAL)
    if office not in who.offices or stage is Stage.VERDICT:
        return refusal(Situation.OTHER_STAGE, f"{stage} is submitted by the {office}")
    if at.state is State.PAUSED:
        return refusal(Situation.PAUSED)
    if (stage, who.agent_id) in record.authors and stage is not at.stage:
        return refusal(Situation.SUBMITTED_ALREADY, stage)
    if _acted_elsewhere(record, who, office):
        return refusal(Situation.SECOND_OFFICE)
    if stage is Stage.TEST and record.turned_down:
        return refusal(Situation.TURNED_DOWN)
    if stage is not at.stage:
        taken = any(written is stage for written, _ in record.authors)
        return refusal(
            Situation.SECOND_AUTHOR if taken else Situation.BEFORE_ITS_STAGE,
            f"the case is at {at.stage}",
        )
    return Allow(f"constitution: {stage} by the {office}")


def can_submit(case: CaseFacts, who: Officer, stage: Stage, outcome: Outcome) -> Decision:
    """Decide whether an agent may submit this stage with this outcome (Spec: constitution 9)."""
    turn = can_take_turn(case, who, stage)
    if isinstance(turn, Allow) and outcome is Outcome.APPROVED and case.record.must_reject:
        return refusal(Situation.MUST_REJECT, ", ".join(sorted(case.record.must_reject)))
    return turn


def _acted_elsewhere(record: CaseRecord, who: Officer, office: Office) -> bool:
    """Whether the agent acted in this case in another office (Spec: constitution 37)."""
    return any(agent == who.agent_id and was is not office for agent, was in record.acted)


def can_rule(  # noqa: PLR0911  one return for each row of the table
    case: CaseFacts, who: Officer, ruling: Ruling
) -> Decision:
    """Decide whether an agent may rule on a case now (Spec: constitution 11, 12, 14, 28)."""
    at = case.at
    if at.state in FINAL:
        return refusal(Situation.FINAL)
    if Office.CONDUCTOR not in who.offices:
        return refusal(Situation.OTHER_RULING)
    if _acted_elsewhere(case.record, who, Office.CONDUCTOR):
        return refusal(Situation.SECOND_OFFICE)
    if at.stage is not Stage.VERDICT:
        return refusal(Situation.RULING_TOO_EARLY, f"the case is at {at.stage}")
    if ruling is Ruling.STOP:
        return Allow("constitution: the CONDUCTOR ends a case")
    if at.state is State.PAUSED:
        return refusal(Situation.PAUSED)
    if ruling is Ruling.DELIVER and not is_deliverable(case):
        return refusal(Situation.NOT_DELIVERABLE)
    if ruling is Ruling.CONTINUE and at.failed_by is None:
        return refusal(Situation.NOTHING_FAILED)
    return Allow(f"constitution: the CONDUCTOR decides {ruling}")


def open_rulings(case: CaseFacts) -> list[Ruling]:
    """What the CONDUCTOR may decide now."""
    conductor = Officer(0, frozenset({Office.CONDUCTOR}))
    return [each for each in Ruling if isinstance(can_rule(case, conductor, each), Allow)]


def is_deliverable(case: CaseFacts) -> bool:
    """Whether REVIEW approved and TEST passed in this very round (Spec: constitution 11)."""
    record = case.record
    return (
        case.at.failed_by is None
        and record.review is Outcome.APPROVED
        and record.test is Outcome.PASSED
    )


def can_ask(who: Officer, names: Sequence[Input]) -> Decision:
    """Decide whether an agent may ask for these inputs (Spec: constitution 4, 6)."""
    legal = {name for office in who.offices for name in OFFICES[office].inputs}
    illegal = [name for name in names if name not in legal]
    if illegal:
        return refusal(Situation.ILLEGAL_INPUT, ", ".join(illegal))
    return Allow("constitution: legal inputs")


def inputs_of(case: CaseFacts, who: Officer) -> tuple[Input, ...]:
    """The inputs that an agent sees now, those of `office_now` (Spec: constitution 4, 5)."""
    office = office_now(case, who)
    return OFFICES[office].inputs if office else ()


def office_now(case: CaseFacts, who: Officer) -> Office | None:
    """The one office in which an agent reads now, of several the one whose turn it is.

    An agent that acted in the case keeps that office or has none, whatever role it was given later
    (Spec: constitution 37).
    """
    acted = frozenset(office for agent, office in case.record.acted if agent == who.agent_id)
    offices = who.offices & acted if acted else who.offices
    in_turn = OFFICE_OF[case.at.stage]
    if len(offices) > 1:
        offices &= {in_turn}
    return next(iter(offices), None)


def has_turn(at: Position, offices: frozenset[Office], acted: Office | None) -> bool:
    """Whether the case waits for an agent with these offices that acted in it in one or in none."""
    office = OFFICE_OF[at.stage]
    return at.state is State.OPEN and office in offices and acted in (office, None)


_ONWARD: Mapping[Outcome, Mapping[Stage, tuple[Move, Stage]]] = {
    Outcome.OK: {
        Stage.ANALYSIS: (Move.ANALYSE, Stage.TASKS),
        Stage.TASKS: (Move.PLAN, Stage.IMPLEMENTATION),
        Stage.IMPLEMENTATION: (Move.IMPLEMENT, Stage.REVIEW),
    },
    Outcome.APPROVED: {Stage.REVIEW: (Move.APPROVE, Stage.TEST)},
    Outcome.PASSED: {Stage.TEST: (Move.PASS_TEST, Stage.VERDICT)},
}
_FAILING: Mapping[Signal, Move] = {
    Signal.NON_VERIFIABLE: Move.PAUSE,
    Signal.REJECTED: Move.REJECT,
    Signal.TEST_FAILED: Move.FAIL_TEST,
    Signal.EVIDENCE_UNAVAILABLE: Move.FAIL_TEST,
    Signal.STRUCTURAL_VIOLATION: Move.PAUSE,
}


def after_submission(at: Position, stage: Stage, outcome: Outcome) -> Next:
    """Where a submitted stage leads: onward, or to what its failure signal asks for."""
    if outcome in SIGNAL_OF:
        signal = SIGNAL_OF[outcome]
        return after_signal(at, signal, _FAILING[signal])
    move, to = _ONWARD[outcome][stage]
    return Next(move, replace(at, stage=to, failed_by=None))


def after_signal(at: Position, signal: Signal, move: Move) -> Next:
    """Apply the consequence of a failure signal (Spec: constitution 9, 12, 13, 15)."""
    effect = SIGNALS[signal]
    number = at.round + effect.new_round
    stop = signal if effect.pauses else None
    if stop is None and number > at.max_rounds:
        stop = Signal.ITERATION_OVERFLOW
    state = State.PAUSED if stop else State.OPEN
    now = replace(at, state=state, stage=Stage.VERDICT, round=number)
    return Next(move, replace(now, failed_by=signal, paused_by=stop))


def after_violation(at: Position) -> Next | None:
    """Abort the running round; None for a case that does not run (Spec: constitution 14)."""
    if at.state is not State.OPEN:
        return None
    return after_signal(at, Signal.STRUCTURAL_VIOLATION, Move.PAUSE)


def after_ruling(case: CaseFacts, ruling: Ruling) -> Next:
    """Where the CONDUCTOR's ruling leads."""
    match ruling:
        case Ruling.CONTINUE:
            stage = restart_stage(case.record)
            return Next(Move.CONTINUE, replace(case.at, stage=stage, failed_by=None))
        case Ruling.DELIVER:
            return Next(Move.DELIVER, replace(case.at, state=State.DELIVERED))
        case Ruling.STOP:
            return Next(Move.STOP, replace(case.at, state=State.STOPPED))


def restart_stage(record: CaseRecord) -> Stage:
    """The stage with which a new round begins: the first one whose result is missing."""
    missing = [s for s in (Stage.ANALYSIS, Stage.TASKS) if s not in record.in_force]
    return missing[0] if missing else Stage.IMPLEMENTATION
