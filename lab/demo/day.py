"""What a story of the demo can do: let an agent call, say what was expected, print the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from core.actors import Person
from lab.demo.client import DemoAgent, DemoAnswer
from lab.demo.narrator import Narrator

OK = ("OK",)


class Unexpected(Exception):
    """An answer was not the one the story expects; the rest of this story makes no sense."""


@dataclass
class Day:
    """One day of the company: its agents, the person of the Board, and the story teller."""

    agents: dict[str, DemoAgent]
    board: Person
    narrator: Narrator
    hire: Callable[[str], DemoAgent]
    now: datetime = field(default_factory=timezone.now)

    def ask(
        self,
        who: str,
        tool: str,
        /,
        *,
        expect: str | tuple[str, ...] = OK,
        headers: Mapping[str, str] | None = None,
        note: str = "",
        **params: Any,
    ) -> dict[str, Any]:
        """Let an agent call a tool; a parameter `from_` is sent as `from`.

        Raises Unexpected for any answer but the expected one.
        """
        body = {("from" if name == "from_" else name): value for name, value in params.items()}
        answer = self.agents[who].call(tool, body, **(headers or {}))
        self.judge(who, tool, answer, expect=expect, note=note or _shown(body))
        return answer.result

    def judge(
        self,
        who: str,
        what: str,
        answer: DemoAnswer,
        *,
        expect: str | tuple[str, ...] = OK,
        note: str = "",
    ) -> None:
        """Print a step with its answer. Raises Unexpected."""
        wanted = (expect,) if isinstance(expect, str) else expect
        right = answer.code in wanted
        self.narrator.step(who, what, note, answer, right=right, expected=" or ".join(wanted))
        if not right:
            raise Unexpected(f"{who} {what}: expected {' or '.join(wanted)}, got {answer.code}")

    def check(self, what: str, *, holds: bool, shown: str = "") -> None:
        """Something that must be so after the answers. Raises Unexpected."""
        self.narrator.fact(what, shown, right=holds)
        if not holds:
            raise Unexpected(what)

    def order(self, *, title: str, body: str) -> str:
        """The Board's own step: a contract for the CEO, by the service that the admin calls."""
        found = issue_for_board(
            person=self.board,
            draft=ContractDraft(to="ceo", title=title, body=body, priority="high"),
            now=timezone.now(),
        )
        self.narrator.person(
            self.board.username, "issues a contract to ceo", f"{found['contract_id']} pending"
        )
        return str(found["contract_id"])

    def inbox(self, who: str, **filters: Any) -> list[dict[str, Any]]:
        """The newest mails of an agent, without a line in the story."""
        body = {("from" if name == "from_" else name): value for name, value in filters.items()}
        answer = self.agents[who].call("read_inbox", {"status": "all", "limit": 20, **body})
        return list(answer.result.get("mails", []))


def _shown(params: Mapping[str, Any]) -> str:
    """The parameters that tell what was tried."""
    names = (
        "to",
        "type",
        "contract_id",
        "mail_id",
        "kind",
        "outcome",
        "verdict",
        "branch",
        "path",
        "case_id",
    )
    return " ".join(f"{name}={params[name]}" for name in names if name in params)
