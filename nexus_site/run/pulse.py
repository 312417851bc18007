"""The pulse of a child process: it beats while the child's event loop runs, its parent listens."""

import asyncio
from dataclasses import dataclass, field
from mmap import mmap

BEAT = 1.0  # seconds
SILENT_AFTER = 30.0
"""Seconds without a beat after which a child is hung or stopped. A busy one beats: threads that
calculate or wait leave its event loop its turn. docs/operations.md names this number."""
LONGEST_LOOK = 1.0
"""Seconds that count at most between two looks of the parent. Where the machine or all processes
together were suspended, more time passed, and the child had none of it."""


@dataclass(kw_only=True)
class Pulse:
    """A number in memory that a process shares with the child it forks; each beat changes it."""

    limit: float = SILENT_AFTER
    silence: float = 0.0  # seconds since the last look that found a beat
    heard: int = 0
    looked: float = 0.0
    memory: mmap = field(default_factory=lambda: mmap(-1, 1))

    def begin(self, *, now: float) -> None:
        """Start listening again, because a new child starts."""
        self.silence, self.looked = 0.0, now

    def beat(self) -> None:
        """Show that this child lives; called in the child."""
        self.memory[0] = (self.memory[0] + 1) % 256

    def is_silent(self, *, now: float) -> bool:
        """Whether no beat came for too long; to be asked several times in a second."""
        passed, self.looked = min(now - self.looked, LONGEST_LOOK), now
        before, self.heard = self.heard, self.memory[0]
        self.silence = self.silence + passed if self.heard == before else 0.0
        return self.silence > self.limit

    async def beat_for_ever(self) -> None:
        """Beat for as long as this event loop runs."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT)
