"""Pure facts of a case that decisions are made from: position, record and officer."""

from __future__ import annotations

from dataclasses import dataclass

from governance.cases.moves import Move
from governance.cases.vocabulary import SIGNALS, Outcome, Signal, Stage, State
from orgchart.policy.vocabulary import Office

FINAL = (State.DELIVERED, State.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a case is. `failed_by` brought it to the verdict, `paused_by` waits for a person."""

    state: State = State.OPEN
    stage: Stage = Stage.ANALYSIS
    round: int = 1
    max_rounds: int = 3
    failed_by: Signal | None = None
    paused_by: Signal | None = None

    @property
    def ruled_round(self) -> int:
        """The round that REVIEW and TEST in force belong to: a failure has opened the next."""
        if self.failed_by is None:
            return self.round
        return self.round - SIGNALS[self.failed_by].new_round


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """What was submitted, as far as decisions need it.

    `in_force` holds the stages whose result counts: ANALYSIS, TASKS unless ANALYSIS was amended
    after it, the others of the ruled round. `authors` are the agents who submitted these; `acted`
    is everyone who acted in the case, by office. `review` is what the REVIEW of the ruled round
    says after an overruling, `amended` that ANALYSIS or TASKS changed after it. `amendments` is how
    often people amended the case.
    `turned_down` is whether a person overruled a REVIEW to REJECTED, and nothing came since then.
    `violated` is whether an agent acted against the constitution while the case was paused.
    """

    in_force: frozenset[Stage] = frozenset()
    authors: frozenset[tuple[Stage, int]] = frozenset()
    acted: frozenset[tuple[int, Office]] = frozenset()
    review: Outcome | None = None
    test: Outcome | None = None
    must_reject: frozenset[Signal] = frozenset()
    submitted: frozenset[Stage] = frozenset()
    amended: bool = False
    amendments: int = 0
    overruled: bool = False
    turned_down: bool = False
    violated: bool = False


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """A case as rules see it."""

    at: Position
    record: CaseRecord


@dataclass(frozen=True, slots=True)
class Officer:
    """An agent and the offices of its role."""

    agent_id: int
    offices: frozenset[Office]


@dataclass(frozen=True, slots=True)
class Next:
    """Where a move leads."""

    move: Move
    at: Position
