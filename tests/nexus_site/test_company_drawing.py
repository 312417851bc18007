"""Where the company's cards are drawn: no two overlap, and each follows its superior."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_site.company.drawing import HEIGHT, WIDTH, draw


@st.composite
def trees(draw_from):
    """A tree under `0`: each node's superior is one before it."""
    below = {}
    for node in range(1, draw_from(st.integers(1, 40))):
        below.setdefault(str(draw_from(st.integers(0, node - 1))), []).append(str(node))
    return below


def overlap(one, other):
    return abs(one.x - other.x) < WIDTH and abs(one.y - other.y) < HEIGHT


class TestADrawing:
    @settings(deadline=None)
    @given(trees())
    def test_shows_everybody_once_without_overlap_inside_its_size(self, below):
        drawn = draw("0", below)
        names = [place.name for place in drawn.places]
        assert sorted(names) == sorted({"0", *(c for each in below.values() for c in each)})
        assert not [pair for pair in combinations(drawn.places, 2) if overlap(*pair)]
        for place in drawn.places:
            assert 0 <= place.x <= drawn.width - WIDTH
            assert 0 <= place.y <= drawn.height - HEIGHT

    @settings(deadline=None)
    @given(trees())
    def test_is_read_from_the_top_and_has_a_line_to_everybody_but_the_root(self, below):
        drawn = draw("0", below)
        seen = {"0": 0}
        for place in drawn.places[1:]:
            (superior,) = (name for name, each in below.items() if place.name in each)
            assert place.depth == seen[superior] + 1
            seen[place.name] = place.depth
        assert len(drawn.lines) == len(drawn.places) - 1

    def test_ends_where_a_chart_leads_in_a_circle(self):
        drawn = draw("a", {"a": ["b"], "b": ["c"], "c": ["a", "b"]})
        assert [place.name for place in drawn.places] == ["a", "b", "c"]
