"""What a pause means for the agent that it stops, and who ends it; pure (Spec: modes 27)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.actors import Person
from core.decision import Allow, Code, Decision, Deny, deny
from core.permissions import Deed
from orgchart.second_person.rules import is_of_board

RULE = "a paused agent calls nothing (spec: modes 27)"


@dataclass(frozen=True, slots=True)
class PauseFacts:
    """An open pause: of one agent, or of the whole organisation."""

    reason: str
    paused_at: datetime
    is_everyone: bool
    by_board: bool

    @property
    def resumed_by(self) -> tuple[str, ...]:
        """The groups of people who can end it: the Board alone what it began itself."""
        only_board = self.is_everyone or self.by_board
        deed = Deed.STOP_ORGANISATION if only_board else Deed.PAUSE_AGENT
        return tuple(group.value for group in deed.value.groups)

    @property
    def refusal(self) -> Deny:
        """The answer to every call while it is open."""
        stopped = "every agent of this organisation is" if self.is_everyone else "you are"
        people = " or ".join(self.resumed_by)
        return deny(
            Code.AGENT_PAUSED,
            f"{stopped} paused by a person: {self.reason}",
            f"stop calling and wait: a member of {people} resumes you. "
            "Your keys, work, mail and mode stay as they are",
            rule=RULE,
            reason=self.reason,
            since=self.paused_at.isoformat(),
            scope=self.scope,
            resumed_by=list(self.resumed_by),
        )

    @property
    def scope(self) -> str:
        """What it stops: `agent` or `organisation`."""
        return "organisation" if self.is_everyone else "agent"


def can_resume(person: Person, *, by_board: bool) -> Decision:
    """Decide whether a person may end a pause (Spec: people 39).

    `by_board` says whether who began it was a member of the Board then: only a member lifts it.
    """
    if is_of_board(person) or not by_board:
        return Allow("who may pause resumes")
    return deny(
        Code.NOT_YOURS,
        "a member of the Board paused this agent",
        "ask a member of the Board",
        rule="the Board lifts what the Board ordered (spec: people 39)",
    )
