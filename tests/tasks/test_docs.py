"""What the documentation lists is what the code does."""

from pathlib import Path

from tasks.rules import CHECKS

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()


def test_every_question_is_listed():
    assert sum(line[:2] in {f"{n}." for n in range(1, 20)} for line in PAGE.splitlines()) == len(
        CHECKS
    )
