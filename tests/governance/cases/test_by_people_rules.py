"""What people may do to a case, and where it leads: pure (Spec: constitution 16-22, 38)."""

import itertools
from dataclasses import replace

import pytest

from core.permissions import PeopleGroup
from governance.cases.by_people import rules
from governance.cases.by_people.vocabulary import CaseAction
from governance.cases.facts import CaseFacts, CaseRecord, Position
from governance.cases.vocabulary import Outcome, Signal, Stage, State
from tests.decisions import code_of

BOTH = frozenset({Stage.ANALYSIS, Stage.TASKS})


def case(state=State.PAUSED, paused_by=Signal.EVIDENCE_UNAVAILABLE, *, at=None, **record):
    record = {"submitted": BOTH, "in_force": BOTH, **record}
    position = Position(state=state, stage=Stage.TEST, paused_by=paused_by, **(at or {}))
    return CaseFacts(position, CaseRecord(**record))


class TestAmending:
    @pytest.mark.parametrize(("state", "stage"), list(itertools.product(State, Stage)))
    def test_is_of_analysis_and_tasks_while_the_case_is_paused(self, state, stage):
        expected = "OK" if state is State.PAUSED else "INVALID_TRANSITION"
        if stage not in BOTH:
            expected = "STAGE_DENIED"
        assert code_of(rules.can_amend(case(state), stage)) == expected

    @pytest.mark.parametrize("stage", sorted(BOTH))
    def test_is_of_what_was_submitted(self, stage):
        found = rules.can_amend(case(submitted=BOTH - {stage}), stage)
        assert code_of(found) == "INVALID_TRANSITION"
        assert found.message == f"there is no {stage} to amend"

    @pytest.mark.parametrize("stage", sorted(BOTH))
    def test_is_done_a_limited_number_of_times(self, stage):
        last = rules.can_amend(case(amendments=rules.MOST_AMENDMENTS - 1), stage)
        assert code_of(last) == "OK"
        found = rules.can_amend(case(amendments=rules.MOST_AMENDMENTS), stage)
        assert code_of(found) == "INVALID_TRANSITION"
        assert found.next_action == "extend or end the case"

    @pytest.mark.parametrize(
        ("stage", "paused_by", "opens"),
        [
            (Stage.ANALYSIS, Signal.EVIDENCE_UNAVAILABLE, Stage.TASKS),
            (Stage.ANALYSIS, Signal.NON_VERIFIABLE, Stage.TASKS),
            (Stage.TASKS, Signal.EVIDENCE_UNAVAILABLE, Stage.IMPLEMENTATION),
            (Stage.TASKS, Signal.NON_VERIFIABLE, None),
            (Stage.TASKS, Signal.STRUCTURAL_VIOLATION, None),
            (Stage.ANALYSIS, Signal.STRUCTURAL_VIOLATION, None),
        ],
    )
    def test_opens_the_next_stage_where_it_ends_the_stop(self, stage, paused_by, opens):
        found = rules.after_amendment(case(paused_by=paused_by), stage).at
        if opens is None:
            assert found == case(paused_by=paused_by).at
        else:
            assert (found.state, found.stage, found.paused_by) == (State.OPEN, opens, None)

    def test_opens_nothing_past_the_last_round(self):
        for number, state in ((3, State.OPEN), (4, State.PAUSED)):
            at = {"round": number, "max_rounds": 3}
            assert rules.after_amendment(case(at=at), Stage.TASKS).at.state is state

    def test_opens_no_implementation_without_an_analysis(self):
        found = rules.after_amendment(case(in_force=frozenset({Stage.TASKS})), Stage.TASKS)
        assert found.at.state is State.PAUSED

    def test_of_the_analysis_opens_tasks_where_none_was_in_force(self):
        found = rules.after_amendment(case(in_force=frozenset()), Stage.ANALYSIS)
        assert (found.at.state, found.at.stage) == (State.OPEN, Stage.TASKS)

    @pytest.mark.parametrize("stage", sorted(BOTH))
    def test_leaves_a_violated_case_to_the_administrator(self, stage):
        found = rules.after_amendment(case(violated=True), stage).at
        assert (found.state, found.paused_by) == (State.PAUSED, Signal.STRUCTURAL_VIOLATION)


REJECTED = case(
    State.OPEN, None, at={"failed_by": Signal.REJECTED, "round": 2}, review=Outcome.REJECTED
)
APPROVED = case(State.OPEN, None, review=Outcome.APPROVED)


class TestOverruling:
    @pytest.mark.parametrize(
        ("facts", "to", "code"),
        [
            (REJECTED, Outcome.APPROVED, "OK"),
            (REJECTED, Outcome.REJECTED, "INVALID_TRANSITION"),
            (APPROVED, Outcome.REJECTED, "OK"),
            (APPROVED, Outcome.APPROVED, "INVALID_TRANSITION"),
            (APPROVED, Outcome.PASSED, "INVALID_TRANSITION"),
            (REJECTED, Outcome.PASSED, "INVALID_TRANSITION"),
        ],
    )
    def test_turns_a_review_to_its_other_outcome(self, facts, to, code):
        assert code_of(rules.can_overrule(facts, to)) == code

    @pytest.mark.parametrize(
        "changed",
        [
            {"review": None}, {"overruled": True}, {"amended": True},
            {"must_reject": frozenset({Signal.REJECTED})},
        ],
    )  # fmt: skip
    def test_needs_a_review_that_still_decides(self, changed):
        facts = replace(REJECTED, record=replace(REJECTED.record, **changed))
        assert code_of(rules.can_overrule(facts, Outcome.APPROVED)) == "INVALID_TRANSITION"

    @pytest.mark.parametrize(
        "failed_by", [None, *(each for each in Signal if each is not Signal.REJECTED)], ids=str
    )
    def test_needs_a_case_that_waits_on_the_review(self, failed_by):
        facts = replace(REJECTED, at=replace(REJECTED.at, failed_by=failed_by))
        assert code_of(rules.can_overrule(facts, Outcome.APPROVED)) == "INVALID_TRANSITION"

    def test_to_approved_goes_on_to_test_in_its_own_round(self):
        found = rules.after_overruling(REJECTED.at, Outcome.APPROVED).at
        assert (found.state, found.stage, found.failed_by) == (State.OPEN, Stage.TEST, None)
        assert found.round == REJECTED.at.ruled_round

    def test_to_rejected_ends_the_round(self):
        found = rules.after_overruling(APPROVED.at, Outcome.REJECTED).at
        assert found.failed_by is Signal.REJECTED

    @pytest.mark.parametrize("state", [State.DELIVERED, State.STOPPED])
    @pytest.mark.parametrize(
        ("facts", "to"), [(REJECTED, Outcome.APPROVED), (APPROVED, Outcome.REJECTED)]
    )
    def test_is_over_with_the_case(self, facts, to, state):
        ended = replace(facts, at=replace(facts.at, state=state))
        assert code_of(rules.can_overrule(ended, to)) == "INVALID_TRANSITION"

    @pytest.mark.parametrize(
        "at", [{"state": State.PAUSED}, {"failed_by": Signal.REJECTED, "round": 2}]
    )
    def test_turns_down_no_round_that_has_ended(self, at):
        facts = replace(APPROVED, at=replace(APPROVED.at, **at))
        assert code_of(rules.can_overrule(facts, Outcome.REJECTED)) == "INVALID_TRANSITION"


class TestExtending:
    @pytest.mark.parametrize(
        ("state", "paused_by", "number", "rounds", "code"),
        [
            (State.PAUSED, Signal.EVIDENCE_UNAVAILABLE, 3, 1, "OK"),
            (State.OPEN, None, 3, 1, "INVALID_TRANSITION"),
            (State.PAUSED, Signal.NON_VERIFIABLE, 3, 1, "INVALID_TRANSITION"),
            (State.PAUSED, Signal.EVIDENCE_UNAVAILABLE, 5, 1, "INVALID_TRANSITION"),
            (State.PAUSED, Signal.EVIDENCE_UNAVAILABLE, 5, 2, "OK"),
            (State.PAUSED, Signal.EVIDENCE_UNAVAILABLE, 3, 97, "OK"),
            (State.PAUSED, Signal.EVIDENCE_UNAVAILABLE, 3, 98, "INVALID_TRANSITION"),
        ],
    )
    def test_gives_a_paused_case_the_rounds_it_needs(self, state, paused_by, number, rounds, code):
        at = Position(state=state, paused_by=paused_by, round=number, max_rounds=3)
        assert code_of(rules.can_extend(at, rounds)) == code

    def test_adds_them_and_opens_the_case(self):
        at = Position(state=State.PAUSED, paused_by=Signal.REJECTED, round=4, max_rounds=3)
        found = rules.after_extension(at, 2).at
        assert (found.state, found.max_rounds, found.paused_by) == (State.OPEN, 5, None)


class TestEnding:
    @pytest.mark.parametrize("state", State)
    def test_is_of_what_has_not_ended(self, state):
        ended = state in (State.DELIVERED, State.STOPPED)
        found = code_of(rules.can_end(Position(state=state)))
        assert found == ("INVALID_TRANSITION" if ended else "OK")


class TestTheCode:
    @pytest.mark.parametrize("action", CaseAction)
    @pytest.mark.parametrize(
        ("groups", "is_admin"),
        [
            ([], False), ([PeopleGroup.REVIEWER], False), ([PeopleGroup.BOARD], True),
            ([PeopleGroup.BOARD, PeopleGroup.OBSERVER], True),
        ],
    )  # fmt: skip
    def test_is_asked_of_who_acts_as_administrator(self, groups, is_admin, action):
        asked = is_admin and action is not CaseAction.ADD_NOTE
        assert rules.needs_code(groups, action) is asked
