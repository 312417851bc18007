"""The states of a change that waits for a second person."""

from enum import StrEnum

from core.machines import Machine, Step

SUBJECT = "change:{}"
"""How the ledger names a change that waits."""


class PendingState(StrEnum):
    """Where a proposed change is."""

    PROPOSED = "proposed"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    STALE = "stale"


_OPEN = (PendingState.PROPOSED,)

PENDING_MACHINE = Machine(
    "pending change",
    PendingState,
    PendingState.PROPOSED.value,
    {
        "confirm": Step(_OPEN, PendingState.CONFIRMED, "another person of the Board"),
        "reject": Step(_OPEN, PendingState.REJECTED, "another person of the Board"),
        "withdraw": Step(_OPEN, PendingState.WITHDRAWN, "the person who proposed it"),
        "go_stale": Step(_OPEN, PendingState.STALE, "a confirmation that finds another difference"),
    },
)
