"""Names in a sentence."""

import pytest

from core.decision import listed


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, ""), (1, "n1"), (3, "n1, n2, n3"), (4, "n1, n2, n3 and 1 more")],
)
def test_names_are_bounded(count, said):
    names = [f"n{number}" for number in range(1, count + 1)]
    assert listed(names, most=3) == said
