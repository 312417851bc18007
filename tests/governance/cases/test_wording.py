"""What people read about a case: a sentence for every position, and the line of stages."""

import itertools

from governance.cases.facts import CaseFacts, CaseRecord, Position
from governance.cases.vocabulary import Outcome, Signal, Stage, State
from governance.cases.wording import MEANING, next_step, round_shown, stages_of


def test_every_signal_means_something_and_every_position_has_a_sentence():
    assert set(MEANING) == set(Signal)
    signals = (None, *Signal)
    for state, stage, failed, paused in itertools.product(State, Stage, signals, signals):
        at = Position(state=state, stage=stage, failed_by=failed, paused_by=paused, round=2)
        assert next_step(at).endswith(".")


def test_a_pause_says_why():
    at = Position(state=State.PAUSED, stage=Stage.VERDICT, paused_by=Signal.STRUCTURAL_VIOLATION)
    assert next_step(at) == "The case waits for a person: an agent acted outside its office."


def test_a_failed_round_counts_until_the_next_begins():
    assert round_shown(Position(round=4, failed_by=Signal.REJECTED)) == "3 of 3 (failed)"
    assert round_shown(Position(round=3)) == "3 of 3"


def test_the_line_of_stages_shows_what_failed_and_what_never_ran():
    written = frozenset({Stage.ANALYSIS, Stage.TASKS, Stage.IMPLEMENTATION, Stage.REVIEW})
    at = Position(stage=Stage.VERDICT, round=2, failed_by=Signal.REJECTED)
    case = CaseFacts(at, CaseRecord(in_force=written, review=Outcome.REJECTED))
    assert [where for _, where in stages_of(case)] == ["done", "done", "done", "failed", "", "now"]
    ended = Position(state=State.DELIVERED, stage=Stage.VERDICT)
    record = CaseRecord(in_force=written | {Stage.TEST}, test=Outcome.PASSED)
    assert {where for _, where in stages_of(CaseFacts(ended, record))} == {"done"}
