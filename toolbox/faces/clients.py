"""Who asks, over a connection, and what waits for it meanwhile."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol


class LeavesWithClient(Protocol):
    """A request that waits for a thread, or to be looked at."""

    def leave(self) -> None:
        """Wait no longer: who asked has left."""


@dataclass(slots=True)
class Client:
    """Who asks, over a connection: when it leaves, what waits for it waits no more."""

    has_left: bool = False
    waiting: set[LeavesWithClient] = field(default_factory=set)

    def leave(self) -> None:
        """The connection ended: without this, requests without a client fill the memory."""
        self.has_left = True
        for request in [*self.waiting]:
            request.leave()


CLIENT: ContextVar[Client | None] = ContextVar("client", default=None)
