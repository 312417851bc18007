"""Who takes part: the agents of an organisation and the Board above them, and the chain between."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import TypeAlias

from orgchart.policy.vocabulary import BOARD


@dataclass(frozen=True, slots=True)
class Agent:
    """One holder of a role. `managers` are the handles above it, the direct superior first.

    `reports_to` is the superior as the chart names it, deactivated or not; '' at the top. `workers`
    are the handles of those that it manages, deactivated or not; the compiled policy has them, and
    they say nothing of the agent itself: it is the same when one comes or goes.
    """

    id: int
    handle: str
    role: str
    title: str
    active: bool = True
    managers: tuple[str, ...] = ()
    group: str = ""
    name: str = ""
    is_leader: bool = False
    skills: frozenset[str] = frozenset()
    system_prompt: str = ""
    reports_to: str = ""
    workers: tuple[str, ...] = field(default=(), compare=False)

    @property
    def address(self) -> str:
        """`group.name` in a group, else the handle (Spec: groups 3)."""
        return f"{self.group}.{self.name}" if self.group else self.handle

    @property
    def superior(self) -> str:
        """The direct superior's handle, `board` at the top."""
        return self.managers[0] if self.managers else BOARD

    def is_across_groups(self, other: Agent) -> bool:
        """Whether another agent is of another group and not both lead theirs (Spec: groups 14)."""
        apart = bool(self.group and other.group) and self.group != other.group
        return apart and not (self.is_leader and other.is_leader)

    @property
    def orphaned(self) -> bool:
        """Whether its own superior is deactivated; the next active agent above replaces it."""
        return self.reports_to not in ("", self.superior)


@dataclass(frozen=True, slots=True)
class Board:
    """The humans at level 0, as one party. It has no row among the agents, so its `id` is None."""

    id: None = None
    handle: str = BOARD
    address: str = BOARD
    title: str = "Board"
    level: int = 0
    active: bool = True


Party: TypeAlias = Agent | Board
"""Who sends, receives, issues or answers: an agent or the Board."""

BOARD_PARTY = Board()


def chain_of(handle: str, superior: Callable[[str], str | None]) -> tuple[str, ...]:
    """The handles above one, nearest first, up to the Board; a circle ends the chain."""
    seen = {handle: None}
    above = superior(handle)
    while above is not None and above not in seen:
        seen[above] = None
        above = superior(above)
    return tuple(seen)[1:]


def active_superior(
    handle: str, superior: Callable[[str], str | None], active: Container[str]
) -> str:
    """The nearest active agent above, else the Board: a deactivated agent blocks no escalation."""
    return next((above for above in chain_of(handle, superior) if above in active), BOARD)
