"""Bars of counts, side by side, and the upper edge of their chart. No database."""

import pytest

from core.admin.charts import Series, count_chart, nice


def counts(name, look, *numbers, links=()):
    return Series(lambda count: f"{count} {name}", look, numbers, links)


class TestCounts:
    def test_are_side_by_side_in_each_stretch(self):
        chart = count_chart(["a", "b"], [counts("new", "x", 1, 0), counts("old", "y", 4, 2)])
        assert [[(bar.look, bar.words) for bar in stretch] for stretch in chart.stretches] == [
            [("x", "a: 1 new"), ("y", "a: 4 old")],
            [("x", "b: 0 new"), ("y", "b: 2 old")],
        ]
        assert [[bar.height for bar in stretch] for stretch in chart.stretches] == [
            [20, 80], [0, 40],
        ]  # fmt: skip
        assert (chart.top, chart.words, chart.is_linked) == ("5", "1 new, 6 old", False)

    def test_lead_to_their_rows(self):
        chart = count_chart(["a", "b"], [counts("new", "x", 1, 0, links=("/a", "/b"))])
        assert [[bar.link for bar in stretch] for stretch in chart.stretches] == [["/a"], ["/b"]]
        assert chart.is_linked

    def test_of_nearly_nothing_can_be_seen(self):
        chart = count_chart(["a"], [counts("new", "x", 1), counts("old", "y", 5000)])
        assert [bar.height for bar in chart.stretches[0]] == [2, 100]

    def test_of_nothing_are_no_bars(self):
        assert count_chart([], []).stretches == []


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (1.1, 2), (4, 5), (6, 10), (99, 100), (2001, 3000)]
)
def test_nice(value, top):
    assert nice(value) == top


def test_nice_has_an_end():
    assert nice(70, most=100) == 100
