"""What a process has only so many of, and how much of it one client or organisation may hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

PART_OF_REST = 10
"""One client gets a tenth of what is left: those that come late find room."""


@dataclass(slots=True)
class Budget:
    """What a process has only so many of, such as connections for streams (Spec: wire 37)."""

    most: int
    open: int = 0
    of: Counter[int] = field(default_factory=Counter)
    """How many the agents of each organisation hold."""

    def is_full_for(self, organisation_id: int) -> bool:
        """Whether an organisation holds as many as are left for all others."""
        return not self.left_for(organisation_id)

    def left_for(self, organisation_id: int) -> int:
        """How many more an organisation may hold, as long as others take none."""
        return -(-max(0, self.most - self.open - self.of[organisation_id]) // 2)

    def count(self, change: int, organisation_id: int | None) -> None:
        """One is taken (1) or given back (-1), by an organisation if it is for an agent."""
        self.open += change
        if organisation_id is not None:
            self.of[organisation_id] += change

    @property
    def share(self) -> int:
        """How many one client may hold: the fewer, the fewer are left for all."""
        return -(-max(0, self.most - self.open) // PART_OF_REST)
