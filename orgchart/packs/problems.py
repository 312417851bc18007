"""What is wrong with a pack: every problem with its file, its line and how to correct it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.terminal import printable


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong, at one place."""

    file: str
    line: int
    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}; {self.fix}"


class BadPack(Exception):
    """A pack that is refused whole, with all of its problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(slots=True)
class Notes:
    """Collects problems while a pack is read to its end."""

    problems: set[Problem] = field(default_factory=set)

    def add(self, file: str, line: int, message: str, fix: str) -> None:
        """Note one problem; line 1 means the file as a whole."""
        self.problems.add(Problem(file, line, printable(message), printable(fix)))

    def all(self) -> list[Problem]:
        """Every problem, by file and line."""
        return sorted(self.problems)
