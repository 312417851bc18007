"""Closed sets of contracts, and their state machine (seed 000 §6.2)."""

from __future__ import annotations

from enum import StrEnum

from core.machines import Machine, Step


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
    """The transitions of a contract, named as the model's methods."""

    ACCEPT = "accept"
    SUBMIT = "submit"
    PASS = "close_passed"  # noqa: S105  a transition, not a password
    FAIL = "close_failed"
    CANCEL = "close_cancelled"


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


OPEN_STATES = (State.PENDING, State.IN_PROGRESS, State.REVIEW)
FINAL_STATES = (State.PASSED, State.FAILED, State.CANCELLED)

MACHINE = Machine(
    "contract",
    State,
    State.PENDING,
    {
        Move.ACCEPT: Step((State.PENDING,), State.IN_PROGRESS, "assignee"),
        Move.SUBMIT: Step((State.IN_PROGRESS,), State.REVIEW, "assignee, by a completion report"),
        Move.PASS: Step(
            (State.REVIEW,), State.PASSED, "issuer, after a PASS of QA where code is touched"
        ),
        Move.FAIL: Step((State.REVIEW,), State.FAILED, "issuer"),
        Move.CANCEL: Step(
            OPEN_STATES, State.CANCELLED, "issuer, Board, or the expiry of an approval"
        ),
    },
)
