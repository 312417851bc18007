"""The case as a pure machine: what each act makes of position and record, for model checking.

It calls the product's rules for every decision and every next position, and keeps beside them an
account of its own: which reviews and tests really took place, in which round.
"""

import itertools
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from core.decision import Allow
from governance.cases import rules
from governance.cases.by_people import rules as people
from governance.cases.facts import FINAL, CaseFacts, CaseRecord, Officer, Position
from governance.cases.refusals import fault_of
from governance.cases.vocabulary import (
    OFFICE_OF,
    OFFICES,
    Input,
    Outcome,
    Ruling,
    Signal,
    Stage,
    State,
)
from orgchart.policy.vocabulary import Office

AGENTS = {office: n for n, office in enumerate(Office, start=1)}
SECOND = 100  # a second agent of the same office
MOST = 3
FOUND = {
    Stage.TASKS: (None, Signal.UNVERIFIABLE_TASK),
    Stage.IMPLEMENTATION: (None, Signal.UNAUTHORISED_CHANGE),
}
"""What the system may find in a content; it obliges the REVIEW to reject."""


@dataclass(frozen=True)
class World:
    """Where a case is, what stands in it, and what really happened."""

    at: Position = field(default_factory=lambda: Position(max_rounds=MOST))
    analysis: bool = False
    tasks: bool = False
    authors: frozenset = frozenset()
    reviews: tuple = ()  # (round, office's outcome, outcome in force)
    tests: tuple = ()  # (round, outcome)
    unverifiable: bool = False
    unauthorised: frozenset = frozenset()  # rounds
    amended: bool = False
    ignored: frozenset = frozenset()  # rounds with a violation that found nothing to abort
    owed: bool = False  # a violation that HUMAN_ADMIN has not decided on

    @cached_property
    def facts(self):
        ruled = self.at.ruled_round
        review = next((r for r in self.reviews if r[0] == ruled), None)
        test = next((t for t in self.tests if t[0] == ruled), None)
        written = {Stage.ANALYSIS} if self.analysis else set()
        written |= {Stage.TASKS} if self.tasks else set()
        fixed = (Stage.ANALYSIS, Stage.TASKS)
        authors = {(s, a) for s, a, n in self.authors if s in fixed or n == ruled}
        return CaseFacts(
            self.at,
            CaseRecord(
                in_force=frozenset(written | {s for s, _ in authors if s not in fixed}),
                authors=frozenset(authors),
                acted=frozenset((a, OFFICE_OF[s]) for s, a, _ in self.authors),
                review=review and review[2],
                test=test and test[1],
                must_reject=frozenset(self._signals(authors)),
                submitted=frozenset(s for s, _, _ in self.authors),
                amended=self.amended,
                overruled=review is not None and review[1] is not review[2],
                violated=self.at.state is State.PAUSED and self.at.round in self.ignored,
            ),
        )

    def _signals(self, authors):
        """What the system found in the TASKS and the IMPLEMENTATION that are in force."""
        if self.tasks and self.unverifiable:
            yield Signal.UNVERIFIABLE_TASK
        is_written = Stage.IMPLEMENTATION in {stage for stage, _ in authors}
        if is_written and self.at.ruled_round in self.unauthorised:
            yield Signal.UNAUTHORISED_CHANGE


def submissions():
    """Every stage, its outcomes, and what the system may find in it."""
    for stage in Stage:
        if stage is not Stage.VERDICT:
            outcomes = OFFICES[OFFICE_OF[stage]].outcomes
            yield from itertools.product([stage], outcomes, FOUND.get(stage, (None,)))


def acts():
    """Every act of every actor."""
    for office, agent in AGENTS.items():
        for who in (agent, agent + SECOND):
            for stage, outcome, found in submissions():
                yield ("submit", office, who, stage, outcome, found)
            for ruling in Ruling:
                yield ("rule", office, who, ruling)
        yield ("ask", office, agent)
    for stage in Stage:
        yield ("amend", stage)
    for outcome in Outcome:
        yield ("overrule", outcome)
    for rounds in (0, 1):
        yield ("extend", rounds)
    yield ("end",)


ACTS = tuple(acts())


def step(world, act):
    """What an act makes of the world; None where it is refused and changes nothing."""
    match act:
        case ("submit", office, who, stage, outcome, found):
            officer = Officer(who, frozenset({office}))
            decision = rules.can_submit(world.facts, officer, stage, outcome)
            if isinstance(decision, Allow):
                # Two agents of one office can be exchanged: whoever submits counts as the first.
                return _submitted(world, AGENTS[office], stage, outcome, found)
            return _violated(world, decision)
        case ("rule", office, who, ruling):
            decision = rules.can_rule(world.facts, Officer(who, frozenset({office})), ruling)
            if isinstance(decision, Allow):
                return replace(world, at=rules.after_ruling(world.facts, ruling).at)
            return _violated(world, decision)
        case ("ask", office, who):
            illegal = [i for i in Input if i not in OFFICES[office].inputs]
            decision = rules.can_ask(Officer(who, frozenset({office})), illegal[:1])
            return _violated(world, decision)
    return _intervened(world, act)


@cache
def moves_from(world):
    """Every act that changes the world, with what it makes of it."""
    return [(act, to) for act in ACTS if (to := step(world, act)) is not None]


def _submitted(world, who, stage, outcome, found):
    number = world.at.round
    changes = {
        "at": rules.after_submission(world.at, stage, outcome).at,
        "authors": world.authors | {(stage, who, number)},
    }
    match stage:
        case Stage.ANALYSIS:
            changes |= {"analysis": True}
        case Stage.TASKS:
            changes |= {"tasks": True, "unverifiable": found is not None}
        case Stage.IMPLEMENTATION:
            others = world.unauthorised - {number}
            changes |= {"amended": False, "unauthorised": others | ({number} if found else set())}
        case Stage.REVIEW:
            changes |= {"reviews": (*world.reviews, (number, outcome, outcome))}
        case Stage.TEST:
            changes |= {"tests": (*world.tests, (number, outcome))}
    return replace(world, **changes)


def _violated(world, decision):
    if fault_of(decision) is None or world.at.state in FINAL:
        return None
    to = rules.after_violation(world.at)
    if to is None:
        return replace(world, ignored=world.ignored | {world.at.round}, owed=True)
    return replace(world, at=to.at, owed=True)


def _intervened(world, act):  # noqa: PLR0911  one return for each act
    facts = world.facts
    match act:
        case ("amend", stage):
            if not isinstance(people.can_amend(facts, stage), Allow):
                return None
            to = people.after_amendment(facts, stage).at
            tasks = world.tasks if stage is Stage.ANALYSIS else True
            tasks = tasks and stage is not Stage.ANALYSIS
            is_same = stage is Stage.ANALYSIS and world.unverifiable
            return replace(world, at=to, amended=True, tasks=tasks, unverifiable=is_same)
        case ("overrule", outcome):
            if not isinstance(people.can_overrule(facts, outcome), Allow):
                return None
            ruled = world.at.ruled_round
            reviews = tuple(
                (n, said, outcome if n == ruled else now) for n, said, now in world.reviews
            )
            to = people.after_overruling(world.at, outcome).at
            return replace(world, at=to, reviews=reviews, owed=False)
        case ("extend", rounds):
            if not isinstance(people.can_extend(world.at, rounds), Allow):
                return None
            return replace(world, at=people.after_extension(world.at, rounds).at, owed=False)
        case ("end",):
            if not isinstance(people.can_end(world.at), Allow):
                return None
            return replace(world, at=people.after_end(world.at).at, owed=False)
    raise AssertionError(act)


def invariants(world):
    """What must hold in every state, with the rules of rounds and pauses."""
    at = world.at
    assert (at.paused_by is not None) == (at.state is State.PAUSED) or at.state is State.STOPPED
    assert at.state is not State.PAUSED or at.stage is Stage.VERDICT
    assert at.state is not State.OPEN or at.round <= at.max_rounds
    assert not world.owed or at.state in (State.PAUSED, State.STOPPED), "HUMAN_ADMIN decides"
    for kind in (world.reviews, world.tests):
        assert len({entry[0] for entry in kind}) == len(kind)
    for number, outcome in world.tests:
        review = next(r for r in world.reviews if r[0] == number)
        assert Outcome.APPROVED in review[1:], "a TEST follows an approved REVIEW"
        assert outcome in Outcome
    if at.state is State.DELIVERED:
        assert (at.round, Outcome.APPROVED) in {(r[0], r[2]) for r in world.reviews}
        assert (at.round, Outcome.PASSED) in world.tests
        assert at.failed_by is None
    if at.state is State.DELIVERED or (at.state is State.OPEN and at.stage is Stage.TEST):
        assert not world.facts.record.must_reject, "a failure signal obliges the REVIEW to reject"
    if at.failed_by is Signal.NON_VERIFIABLE:
        assert at.state in (State.PAUSED, State.STOPPED) or world.amended, "ANALYSIS comes first"
