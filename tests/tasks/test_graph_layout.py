"""The drawing of dependencies: layers, no overlaps, straight where it can be. No database."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.pages.graph_layout import BETWEEN, BOX_HEIGHT, BOX_WIDTH, lay_out, layers_of

DIAMOND = [(1, 2), (1, 3), (2, 4), (3, 4)]
CHAIN = [(n, n + 1) for n in range(1, 60)]


def ways_of(edges):
    return {(line.before, line.after) for line in lay_out(2, edges).lines}


class TestLayers:
    def test_of_a_task_alone_is_one(self):
        assert layers_of(7, []) == {7: 0}

    def test_put_what_it_waits_for_left_and_what_waits_right(self):
        assert layers_of(2, [(1, 2), (2, 3), (3, 4)]) == {1: -1, 2: 0, 3: 1, 4: 2}

    def test_count_the_longest_way(self):
        assert layers_of(1, [*DIAMOND, (1, 4), (4, 5), (1, 5)])[5] == 3

    def test_leave_out_what_only_shares_a_neighbour(self):
        assert set(layers_of(2, [(1, 2), (1, 9)])) == {1, 2}

    def test_end_where_a_circle_was_written_by_force(self):
        assert set(layers_of(1, [(1, 2), (2, 1)])) == {1, 2}


class TestADrawing:
    def test_of_a_chain_is_straight(self):
        drawn = lay_out(30, CHAIN)
        assert len({spot.y for spot in drawn.spots.values()}) == 1
        assert len(drawn.lines) == 59

    def test_of_a_fan_stands_around_its_middle(self):
        drawn = lay_out(1, [(1, n) for n in range(2, 7)])
        heights = sorted(spot.y for spot in drawn.spots.values() if spot.x > drawn.spots[1].x)
        assert heights == sorted(set(heights))
        assert drawn.spots[1].y == heights[2]

    def test_leaves_out_what_follows_from_other_lines(self):
        assert ways_of([(1, 2), (2, 3), (1, 3)]) == {(1, 2), (2, 3)}
        assert lay_out(2, [(1, 2), (2, 3), (1, 3)]).implied == 1

    def test_leads_a_long_line_past_the_boxes(self):
        """1 -> 5 passes two layers; nothing stands where it does."""
        drawn = lay_out(1, [(1, 2), (2, 3), (3, 4), (1, 6), (6, 4)])
        assert drawn.implied == 0
        long = next(line.way for line in drawn.lines if line.before == 6 or line.after == 6)
        assert long.startswith("M")
        bent = [line.way for line in drawn.lines if "H" in line.way]
        assert len(bent) == 1

    def test_is_the_same_each_time(self):
        assert lay_out(1, DIAMOND) == lay_out(1, list(reversed(DIAMOND)))

    def test_does_not_cross_what_need_not_cross(self):
        drawn = lay_out(0, [(0, 1), (0, 2), (1, 20), (2, 10)])
        assert (drawn.spots[1].y < drawn.spots[2].y) == (drawn.spots[20].y < drawn.spots[10].y)


graphs = st.integers(1, 24).flatmap(
    lambda size: st.tuples(
        st.integers(0, size - 1),
        st.sets(
            st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
                lambda edge: edge[0] < edge[1]
            ),
            max_size=60,
        ),
    )
)


@settings(max_examples=120, deadline=None)
@given(graphs)
def test_any_drawing_keeps_its_promises(graph):
    focus, edges = graph
    drawn = lay_out(focus, edges)
    assert focus in drawn.spots
    for line in drawn.lines:
        assert drawn.spots[line.before].x + BOX_WIDTH < drawn.spots[line.after].x
    for one, other in combinations(drawn.spots.values(), 2):
        if one.x == other.x:
            assert abs(one.y - other.y) >= BOX_HEIGHT + BETWEEN - 1
    for spot in drawn.spots.values():
        assert 0 <= spot.x <= drawn.width - BOX_WIDTH
        assert 0 <= spot.y <= drawn.height - BOX_HEIGHT
    within = {(a, b) for a, b in edges if a in drawn.spots and b in drawn.spots}
    assert len(drawn.lines) + drawn.implied == len(within)


@pytest.mark.parametrize("size", [60])
def test_the_densest_of_graphs_is_drawn_too(size):
    drawn = lay_out(30, list(combinations(range(size), 2)))
    assert len(drawn.lines) == size - 1
