"""Closed sets of contracts, and the table of their states (seed 000 §6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class ContractKind(StrEnum):
    """What a contract is for: work, or an authorisation (decisions.md § Contracts)."""

    WORK = "work"
    ORG_CHANGE = "org_change"
    DEPLOYMENT_APPROVAL = "deployment_approval"
    BUDGET = "budget"


class State(StrEnum):
    """Where a contract is (seed 000 §6.2)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Move(StrEnum):
    """What moves a contract from one state to the next."""

    ACCEPT = "accept"
    SUBMIT = "submit"
    PASS = "pass"  # noqa: S105  a move, no password
    FAIL = "fail"
    CANCEL = "cancel"


class Outcome(StrEnum):
    """How a contract is closed (wire: close_contract)."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def move(self) -> Move:
        """The move that closes with this outcome."""
        return {
            Outcome.PASSED: Move.PASS,
            Outcome.FAILED: Move.FAIL,
            Outcome.CANCELLED: Move.CANCEL,
        }[self]


class ReportKind(StrEnum):
    """What a report says of the work (wire: submit_report)."""

    PROGRESS = "progress"
    COMPLETION = "completion"


class Finding(StrEnum):
    """What QA finds (seed 000 §3.2)."""

    PASS = "PASS"  # noqa: S105  a finding, no password
    FAIL = "FAIL"


class Part(StrEnum):
    """Whose side of a contract an agent is on (wire: list_contracts)."""

    ISSUED = "issued"
    ASSIGNED = "assigned"


TRANSITIONS: Mapping[Move, tuple[tuple[State, ...], State]] = {
    Move.ACCEPT: ((State.PENDING,), State.IN_PROGRESS),
    Move.SUBMIT: ((State.IN_PROGRESS,), State.REVIEW),
    Move.PASS: ((State.REVIEW,), State.PASSED),
    Move.FAIL: ((State.REVIEW,), State.FAILED),
    Move.CANCEL: ((State.PENDING, State.IN_PROGRESS, State.REVIEW), State.CANCELLED),
}
"""Every move: the states it starts from and the one it ends in. Nothing else moves a contract."""

OPEN_STATES = (State.PENDING, State.IN_PROGRESS, State.REVIEW)
FINAL_STATES = (State.PASSED, State.FAILED, State.CANCELLED)


def moves_from(state: State) -> tuple[Move, ...]:
    """The moves a contract in this state can make; none from a final one."""
    return tuple(move for move, (sources, _) in TRANSITIONS.items() if state in sources)
