"""Offices × stages × actions × inputs against the table written by hand."""

import itertools

import pytest

from core.decision import Allow
from governance.cases import rules
from governance.cases.facts import CaseFacts, CaseRecord, Officer, Position
from governance.cases.moves import Move
from governance.cases.refusals import REFUSALS, Situation, fault_of
from governance.cases.vocabulary import (
    OFFICE_OF,
    OFFICES,
    SIGNALS,
    Input,
    Outcome,
    Ruling,
    Signal,
    Stage,
    State,
)
from orgchart.policy.vocabulary import Office
from tests.governance.cases import oracle

ME, OTHER = 1, 2


def position(state, stage, **changes):
    paused = Signal.STRUCTURAL_VIOLATION if state == "paused" else None
    return Position(
        state=State(state), stage=Stage(stage), paused_by=paused, failed_by=paused, **changes
    )


def code_of(decision):
    return "OK" if isinstance(decision, Allow) else decision.code.value


class TestTheTables:
    def test_of_offices(self):
        assert {o.value: {i.value for i in c.inputs} for o, c in OFFICES.items()} == oracle.INPUTS
        assert {o.value: c.stage.value for o, c in OFFICES.items()} == oracle.STAGE

    def test_of_signals(self):
        rows = [line.split() for line in oracle.SIGNALS.strip().splitlines()]
        wanted = {name: tuple(cell == "Y" for cell in cells) for name, *cells in rows}
        found = {s.value: (c.new_round, c.pauses, c.must_reject) for s, c in SIGNALS.items()}
        assert found == wanted

    def test_of_refusals(self):
        found = {s.name: (r.code.value, r.fault is not None) for s, r in REFUSALS.items()}
        wanted = {name: (code, True) for name, code in oracle.VIOLATIONS.items()}
        wanted |= {name: (code, False) for name, code in oracle.MISTAKES.items()}
        assert found == wanted
        assert set(REFUSALS) == set(Situation)


SETS_OF_OFFICES = [
    frozenset(some)
    for size in range(len(Office) + 1)
    for some in itertools.combinations(Office, size)
]


class TestOpening:
    @pytest.mark.parametrize("offices", SETS_OF_OFFICES)
    def test_is_of_the_analyst(self, offices):
        wanted = "OK" if Office.ANALYST in offices else oracle.MISTAKES["OPENED_BY_OTHER"]
        assert code_of(rules.can_open(Officer(ME, offices))) == wanted

    @pytest.mark.parametrize("held", SETS_OF_OFFICES)
    def test_needs_every_office_held(self, held):
        found = rules.can_run_to_end(held)
        vacant = [office.value for office in Office if office not in held]
        assert isinstance(found, Allow) is (not vacant)
        if vacant:
            assert ", ".join(vacant) in found.message


class TestSubmitting:
    @pytest.mark.parametrize("state", ["open", "paused", "delivered", "stopped"])
    @pytest.mark.parametrize("office", oracle.OFFICES)
    @pytest.mark.parametrize("author", [None, ME, OTHER])
    def test_is_answered_as_the_table_says(self, state, office, author):
        ats = ["VERDICT"] if state == "paused" else oracle.STAGES
        for at, stage in itertools.product(ats, oracle.STAGES[:-1]):
            written = frozenset() if author is None else frozenset({(Stage(stage), author)})
            case = CaseFacts(position(state, at), CaseRecord(authors=written))
            decision = rules.can_take_turn(
                case, Officer(ME, frozenset({Office(office)})), Stage(stage)
            )
            code, violation = oracle.submission(
                state, at, office, stage, written_by_self=author == ME, written=author is not None
            )
            assert code_of(decision) == code, (at, stage)
            is_fault = code != "OK" and fault_of(decision) is not None
            assert is_fault is violation, (at, stage)

    @pytest.mark.parametrize("at", Stage)
    def test_a_verdict_is_no_submission(self, at):
        """The CONDUCTOR rules; it submits nothing."""
        case = CaseFacts(position("open", at), CaseRecord(authors=frozenset()))
        conductor = Officer(ME, frozenset({Office.CONDUCTOR}))
        found = rules.can_take_turn(case, conductor, Stage.VERDICT)
        assert code_of(found) == REFUSALS[Situation.OTHER_STAGE].code.value

    @pytest.mark.parametrize(("stage", "outcome"), oracle.LEADS)
    def test_leads_where_the_table_says(self, stage, outcome):
        to = rules.after_submission(position("open", stage), Stage(stage), Outcome(outcome)).at
        state, at, further = oracle.LEADS[stage, outcome]
        assert (to.state, to.stage, to.round) == (state, at, 1 + further)

    def test_has_the_outcomes_of_the_table(self):
        found = {
            c.stage.value: tuple(o.value for o in c.outcomes)
            for c in OFFICES.values()
            if c.stage is not Stage.VERDICT
        }
        assert found == oracle.OUTCOMES

    @pytest.mark.parametrize("stage", oracle.STAGES[:-1])
    def test_by_an_agent_of_another_office_in_this_case_is_a_violation(self, stage):
        office = next(o for o, s in oracle.STAGE.items() if s == stage)
        for other in set(oracle.OFFICES) - {office}:
            record = CaseRecord(acted=frozenset({(ME, Office(other))}))
            who = Officer(ME, frozenset({Office(office), Office(other)}))
            decision = rules.can_take_turn(
                CaseFacts(position("open", stage), record), who, Stage(stage)
            )
            assert decision.rule == Situation.SECOND_OFFICE

    @pytest.mark.parametrize("stage", oracle.STAGES[:-1])
    @pytest.mark.parametrize("acted", [(ME, True), (OTHER, True), (OTHER, False)])
    def test_is_open_to_who_acted_in_this_office_or_to_others_who_acted(self, stage, acted):
        office = OFFICE_OF[Stage(stage)]
        agent, in_this = acted
        other = Office.CONDUCTOR if office is not Office.CONDUCTOR else Office.ANALYST
        record = CaseRecord(acted=frozenset({(agent, office if in_this else other)}))
        case = CaseFacts(position("open", stage), record)
        found = rules.can_take_turn(case, Officer(ME, frozenset({office})), Stage(stage))
        assert isinstance(found, Allow)

    @pytest.mark.parametrize("written", [None, *oracle.STAGES[:-1]])
    def test_before_its_stage_says_whether_another_has_written_it(self, written):
        """`written` is the one stage that another agent has submitted."""
        authors = frozenset() if written is None else frozenset({(Stage(written), OTHER)})
        case = CaseFacts(position("open", "VERDICT"), CaseRecord(authors=authors))
        for stage in oracle.STAGES[:-1]:
            who = Officer(ME, frozenset({OFFICE_OF[Stage(stage)]}))
            found = rules.can_take_turn(case, who, Stage(stage))
            second = Situation.SECOND_AUTHOR if stage == written else Situation.BEFORE_ITS_STAGE
            assert found.rule == second

    def test_may_approve_where_no_signal_obliges_and_only_in_its_turn(self):
        reviewer = Officer(ME, frozenset({Office.REVIEWER}))
        quiet = CaseFacts(position("open", "REVIEW"), CaseRecord())
        approved = rules.can_submit(quiet, reviewer, Stage.REVIEW, Outcome.APPROVED)
        assert isinstance(approved, Allow)
        obliged = CaseRecord(must_reject=frozenset({Signal.REJECTED}))
        early = CaseFacts(position("open", "TASKS"), obliged)
        found = rules.can_submit(early, reviewer, Stage.REVIEW, Outcome.APPROVED)
        assert found.rule == Situation.BEFORE_ITS_STAGE

    @pytest.mark.parametrize("signal", [s for s in Signal if SIGNALS[s].must_reject])
    def test_must_reject_after_a_signal(self, signal):
        case = CaseFacts(position("open", "REVIEW"), CaseRecord(must_reject=frozenset({signal})))
        reviewer = Officer(ME, frozenset({Office.REVIEWER}))
        approved = rules.can_submit(case, reviewer, Stage.REVIEW, Outcome.APPROVED)
        assert approved.code == "INVALID_TRANSITION"
        rejected = rules.can_submit(case, reviewer, Stage.REVIEW, Outcome.REJECTED)
        assert isinstance(rejected, Allow)


class TestRuling:
    @pytest.mark.parametrize("office", oracle.OFFICES)
    @pytest.mark.parametrize("ruling", ["CONTINUE", "DELIVER", "STOP"])
    def test_is_the_conductors_at_the_verdict(self, office, ruling):
        who = Officer(ME, frozenset({Office(office)}))
        for state, at in itertools.product(
            ["open", "paused", "delivered", "stopped"], oracle.STAGES
        ):
            if state == "paused" and at != "VERDICT":
                continue
            decision = rules.can_rule(
                CaseFacts(position(state, at), CaseRecord()), who, Ruling(ruling)
            )
            if state in ("delivered", "stopped"):
                wanted = "INVALID_TRANSITION"
            elif office != "CONDUCTOR" or at != "VERDICT":
                wanted = "STAGE_DENIED"
            else:
                wanted = "OK" if ruling == "STOP" else "INVALID_TRANSITION"
            assert code_of(decision) == wanted, (state, at)

    @pytest.mark.parametrize("review", [None, *Outcome])
    @pytest.mark.parametrize("test", [None, *Outcome])
    @pytest.mark.parametrize("failed_by", [None, *Signal])
    def test_delivers_only_what_was_approved_and_passed_in_it(self, review, test, failed_by):
        at = Position(stage=Stage.VERDICT, failed_by=failed_by)
        case = CaseFacts(at, CaseRecord(review=review, test=test))
        conductor = Officer(ME, frozenset({Office.CONDUCTOR}))
        wanted = (review, test, failed_by) == ("APPROVED", "PASSED", None)
        assert isinstance(rules.can_rule(case, conductor, Ruling.DELIVER), Allow) is wanted

    @pytest.mark.parametrize("ruling", Ruling)
    @pytest.mark.parametrize("office", [office for office in Office if office != "CONDUCTOR"])
    def test_is_not_of_who_acted_in_another_office(self, ruling, office):
        """Whoever else acted in it."""
        conductor = Officer(ME, frozenset({Office.CONDUCTOR, office}))
        at = Position(stage=Stage.VERDICT, failed_by=Signal.REJECTED)
        mine = CaseRecord(acted=frozenset({(ME, office)}))
        assert rules.can_rule(CaseFacts(at, mine), conductor, ruling).rule == (
            Situation.SECOND_OFFICE
        )
        fine = CaseRecord(acted=frozenset({(OTHER, office), (ME, Office.CONDUCTOR)}))
        found = rules.can_rule(CaseFacts(at, fine), conductor, ruling)
        assert isinstance(found, Allow) is (ruling is not Ruling.DELIVER)

    @pytest.mark.parametrize("failed_by", [None, *Signal])
    @pytest.mark.parametrize("is_done", [False, True])
    def test_is_open_as_each_is_allowed(self, failed_by, is_done):
        at = Position(stage=Stage.VERDICT, failed_by=failed_by)
        done = CaseRecord(review=Outcome.APPROVED, test=Outcome.PASSED)
        case = CaseFacts(at, done if is_done else CaseRecord())
        wanted = {Ruling.STOP}
        wanted |= {Ruling.CONTINUE} if failed_by else set()
        wanted |= {Ruling.DELIVER} if is_done and not failed_by else set()
        assert set(rules.open_rulings(case)) == wanted


class TestInputs:
    @pytest.mark.parametrize("office", oracle.OFFICES)
    def test_are_the_offices_own_and_no_other(self, office):
        who = Officer(ME, frozenset({Office(office)}))
        for name in oracle.EVERY_INPUT:
            decision = rules.can_ask(who, [Input(name)])
            legal = name in oracle.INPUTS[office]
            assert code_of(decision) == ("OK" if legal else "INPUT_DENIED")
            assert legal or fault_of(decision) == "ILLEGAL_INPUT"
        for state, at in itertools.product(["open", "delivered", "stopped"], oracle.STAGES):
            case = CaseFacts(position(state, at), CaseRecord())
            assert set(rules.inputs_of(case, who)) == oracle.INPUTS[office]

    def test_of_several_offices_are_those_of_the_one_in_turn(self):
        who = Officer(ME, frozenset({Office.ANALYST, Office.PLANNER}))
        for at in oracle.STAGES:
            case = CaseFacts(position("open", at), CaseRecord())
            seen = {"ANALYSIS": {"REQUEST"}, "TASKS": {"ANALYSIS"}}.get(at, set())
            assert set(rules.inputs_of(case, who)) == seen

    def test_stay_those_of_the_office_in_which_the_agent_acted(self):
        who = Officer(ME, frozenset({Office.PLANNER}))
        record = CaseRecord(acted=frozenset({(ME, Office.ANALYST)}))
        assert rules.inputs_of(CaseFacts(position("open", "TASKS"), record), who) == ()


class TestTheTurn:
    @pytest.mark.parametrize("state", State)
    @pytest.mark.parametrize("stage", Stage)
    @pytest.mark.parametrize("acted", [None, *Office])
    def test_is_of_an_open_case_and_the_office_that_the_agent_has_and_kept(
        self, state, stage, acted
    ):
        office = OFFICE_OF[stage]
        for offices in (frozenset({office}), frozenset(Office), frozenset(Office) - {office}):
            expected = state is State.OPEN and office in offices and acted in (None, office)
            at = Position(state=state, stage=stage)
            assert rules.has_turn(at, offices, acted) is expected


class TestAFailure:
    """Spec: constitution 9, 12, 13, 15."""

    @pytest.mark.parametrize("signal", Signal)
    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_pauses_by_itself_or_past_the_last_round(self, signal, number):
        effect = SIGNALS[signal]
        at = Position(stage=Stage.REVIEW, round=number, max_rounds=3)
        found = rules.after_signal(at, signal, Move.OVERRULE_TO_REJECTED).at
        is_past = number + effect.new_round > 3
        overflow = Signal.ITERATION_OVERFLOW if is_past else None
        assert found.paused_by is (signal if effect.pauses else overflow)
        assert (found.state is State.PAUSED) is (effect.pauses or is_past)
        assert (found.round, found.failed_by) == (number + effect.new_round, signal)
