"""What the documentation lists is what the code does."""

from pathlib import Path

from tasks.rules.updates import CHECKS

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()


def test_every_question_is_listed():
    numbers = [line.split(".")[0] for line in PAGE.splitlines()]
    assert [n for n in numbers if n.isdigit()] == [str(n + 1) for n in range(len(CHECKS))]
