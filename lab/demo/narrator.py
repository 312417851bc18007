"""Prints the day so that a person can read it; colour only on a terminal."""

from __future__ import annotations

from typing import TextIO

from lab.demo.client import DemoAnswer

GREEN, RED, YELLOW, BOLD, DIM, PLAIN = "32", "31", "33", "1", "2", "0"


class Narrator:
    """The teller of the day: chapters, numbered steps, the system's answers, the account."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self.out = out
        self.colour = colour
        self.steps = self.refused = 0
        self.wrong: list[str] = []

    def chapter(self, title: str) -> None:
        """Begin a story."""
        self._line(f"\n{self._in(BOLD, title)}")

    def step(
        self, who: str, what: str, note: str, answer: DemoAnswer, *, right: bool, expected: str
    ) -> None:
        """One call and what it was answered."""
        self.steps += 1
        allowed = answer.code == "OK"
        self.refused += not allowed
        mark = self._in(GREEN if right else RED, "✓" if right else "✗")
        code = self._in(GREEN if allowed else YELLOW, answer.code)
        self._line(f"{self.steps:4} {mark} {who:16} {what:18} {self._in(DIM, note)}")
        self._line(f"       → {answer.status} {code}  {_said(answer)}")
        if not right:
            self._failed(f"step {self.steps}: {who} {what} was answered {answer.code}", expected)

    def person(self, who: str, what: str, shown: str) -> None:
        """Something a human did."""
        self.steps += 1
        self._line(f"{self.steps:4} {self._in(GREEN, '✓')} {who:16} {what}")
        self._line(f"       → {shown}")

    def fact(self, what: str, shown: str, *, right: bool) -> None:
        """Something that was looked up afterwards."""
        self.steps += 1
        mark = self._in(GREEN if right else RED, "✓" if right else "✗")
        self._line(f"{self.steps:4} {mark} {what}" + (f": {shown}" if shown else ""))
        if not right:
            self._failed(f"step {self.steps}: not so", what)

    def broken(self, title: str, problem: str) -> None:
        """A story that could not be told to its end."""
        self.wrong.append(f"{title}: {problem}")
        self._line(self._in(RED, f"       the story stops here: {problem}"))

    def remark(self, text: str) -> None:
        """Something to know that is no step."""
        self._line(self._in(BOLD, text))

    def account(self) -> None:
        """How the day went."""
        self._line("")
        for problem in self.wrong:
            self._line(self._in(RED, problem))
        verdict = "every answer was the expected one" if not self.wrong else "NOT as expected"
        colour = RED if self.wrong else GREEN
        self._line(
            self._in(colour, f"{self.steps} steps, {self.refused} of them refused: {verdict}.")
        )

    def _failed(self, what: str, expected: str) -> None:
        self.wrong.append(f"{what}; expected: {expected}")
        self._line(self._in(RED, f"       expected {expected}"))

    def _in(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[{PLAIN}m" if self.colour and text else text

    def _line(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()


def _said(answer: DemoAnswer) -> str:
    """The answer in a line: what was made, or why not."""
    if answer.code != "OK":
        return str(answer.body.get("message", ""))[:160]
    result = answer.result or answer.body
    names = ("contract_id", "mail_id", "escalation_id", "verdict_id", "report_id", "agent", "state",
             "status", "mode", "version", "policy_version")  # fmt: skip
    return "  ".join(f"{name}={result[name]}" for name in names if result.get(name) is not None)
