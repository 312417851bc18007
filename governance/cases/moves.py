"""What can happen to a case, as pure data: the table of moves, and both state machines from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.machines import Machine, Step
from governance.cases.vocabulary import Stage, State


class Move(StrEnum):
    """Everything that can happen to the position of a case."""

    ANALYSE = "analyse"
    PLAN = "plan"
    IMPLEMENT = "implement"
    APPROVE = "approve"
    REJECT = "reject"
    PASS_TEST = "pass_test"  # noqa: S105  a move, not a password
    FAIL_TEST = "fail_test"
    PAUSE = "pause"
    CONTINUE = "continue"
    DELIVER = "deliver"
    STOP = "stop"
    AMEND = "amend"
    OVERRULE_TO_APPROVED = "overrule_to_approved"
    OVERRULE_TO_REJECTED = "overrule_to_rejected"
    EXTEND = "extend"
    END = "end"


@dataclass(frozen=True, slots=True)
class Path:
    """From which states and stages a move leads to which, and who makes it.

    Without `to_stages` the stage stays as it is.
    """

    by: str
    states: tuple[State, ...]
    stages: tuple[Stage, ...]
    to_states: tuple[State, ...]
    to_stages: tuple[Stage, ...] = ()


RUNNING = (State.OPEN,)
UNFINISHED = (State.OPEN, State.PAUSED)
SUBMITTED = tuple(stage for stage in Stage if stage is not Stage.VERDICT)

MOVES: Mapping[Move, Path] = {
    Move.ANALYSE: Path("Analyst", RUNNING, (Stage.ANALYSIS,), RUNNING, (Stage.TASKS,)),
    Move.PLAN: Path("Planner", RUNNING, (Stage.TASKS,), RUNNING, (Stage.IMPLEMENTATION,)),
    Move.IMPLEMENT: Path("Implementer", RUNNING, (Stage.IMPLEMENTATION,), RUNNING, (Stage.REVIEW,)),
    Move.APPROVE: Path("Reviewer", RUNNING, (Stage.REVIEW,), RUNNING, (Stage.TEST,)),
    Move.REJECT: Path("Reviewer", RUNNING, (Stage.REVIEW,), UNFINISHED, (Stage.VERDICT,)),
    Move.PASS_TEST: Path("Tester", RUNNING, (Stage.TEST,), RUNNING, (Stage.VERDICT,)),
    Move.FAIL_TEST: Path("Tester", RUNNING, (Stage.TEST,), UNFINISHED, (Stage.VERDICT,)),
    Move.PAUSE: Path("a mandatory stop", RUNNING, tuple(Stage), (State.PAUSED,), (Stage.VERDICT,)),
    Move.CONTINUE: Path(
        "CONDUCTOR",
        RUNNING,
        (Stage.VERDICT,),
        RUNNING,
        (Stage.ANALYSIS, Stage.TASKS, Stage.IMPLEMENTATION),
    ),
    Move.DELIVER: Path("CONDUCTOR", RUNNING, (Stage.VERDICT,), (State.DELIVERED,)),
    Move.STOP: Path("CONDUCTOR", UNFINISHED, (Stage.VERDICT,), (State.STOPPED,)),
    Move.AMEND: Path(
        "HUMAN_REVIEWER or HUMAN_ADMIN",
        (State.PAUSED,),
        (Stage.VERDICT,),
        UNFINISHED,
        (Stage.TASKS, Stage.IMPLEMENTATION, Stage.VERDICT),
    ),
    Move.OVERRULE_TO_APPROVED: Path(
        "HUMAN_ADMIN", UNFINISHED, (Stage.VERDICT,), RUNNING, (Stage.TEST,)
    ),
    Move.OVERRULE_TO_REJECTED: Path(
        "HUMAN_ADMIN", RUNNING, (Stage.TEST, Stage.VERDICT), UNFINISHED, (Stage.VERDICT,)
    ),
    Move.EXTEND: Path("HUMAN_ADMIN", (State.PAUSED,), (Stage.VERDICT,), RUNNING),
    Move.END: Path("HUMAN_ADMIN", UNFINISHED, tuple(Stage), (State.STOPPED,)),
}
"""The one table of moves; both machines are built from it."""

STATE_STEPS: Mapping[State, str] = {
    State.OPEN: "resume",
    State.PAUSED: "pause",
    State.DELIVERED: "deliver",
    State.STOPPED: "stop",
}
"""The transition method that leads to a state."""


def stage_step(stage: Stage) -> str:
    """The transition method that leads to a stage."""
    return f"to_{stage.value.lower()}"


def _state_steps() -> dict[str, Step]:
    found = {}
    for target, name in STATE_STEPS.items():
        moves = [each for each in MOVES.values() if target in each.to_states]
        sources = tuple(s for s in State if s is not target and any(s in m.states for m in moves))
        by = [m.by for m in moves if any(s is not target for s in m.states)]
        found[name] = Step(sources, target, ", ".join(dict.fromkeys(by)))
    return found


def _stage_steps() -> dict[str, Step]:
    found = {}
    for target in Stage:
        moves = [each for each in MOVES.values() if target in each.to_stages]
        sources = tuple(s for s in Stage if s is not target and any(s in m.stages for m in moves))
        by = [m.by for m in moves if any(s is not target for s in m.stages)]
        found[stage_step(target)] = Step(sources, target, ", ".join(dict.fromkeys(by)))
    return found


STATES = Machine("case", State, State.OPEN, _state_steps())
STAGES = Machine("case_stage", Stage, Stage.ANALYSIS, _stage_steps())
