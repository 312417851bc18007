"""Bars for figures over time: heights, looks, words, and durations spelled out. No database."""

import pytest

from tasks.insight.charts import LEAST, Series, count_chart, nice, rate_chart, spelled
from tasks.insight.figures import CONFLICTS, INVALID_TRANSITIONS, ROLE_MATCH, Figure


def rates(*pairs, measure=ROLE_MATCH):
    figures = [Figure(measure, part, whole) for part, whole in pairs]
    return rate_chart([f"day {n}" for n in range(len(pairs))], figures)


class TestARate:
    def test_is_good_or_bad_by_its_target(self):
        chart = rates((100, 100), (95, 100), (0, 0))
        assert [bar.look for bar in chart.bars] == ["tc-good", "tc-bad", "tc-none"]
        assert [bar.height for bar in chart.bars] == [100, 95, LEAST]
        assert (chart.top, chart.target) == ("100 %", 5)

    def test_of_few_shows_them_large(self):
        chart = rates((3, 100), (9, 100), measure=CONFLICTS)
        assert [bar.look for bar in chart.bars] == ["tc-good", "tc-bad"]
        assert (chart.top, chart.target) == ("10 %", 50)
        assert [bar.height for bar in chart.bars] == [30, 90]

    def test_of_none_is_good_where_none_is_the_target(self):
        chart = rates((0, None), (3, None), measure=INVALID_TRANSITIONS)
        assert [bar.look for bar in chart.bars] == ["tc-good", "tc-bad"]
        assert (chart.top, chart.target) == ("3", None)

    def test_says_itself_in_words(self):
        chart = rates((28, 29), (0, 0))
        assert chart.bars[0].words == "day 0: 96.6 % (28 of 29)"
        assert chart.bars[1].words == "day 1: nothing to measure"
        assert chart.words == "day 0: 96.6 % (28 of 29)"

    def test_stays_within_the_drawing(self):
        chart = rates(*[(n, 90) for n in range(90)], measure=CONFLICTS)
        for one, other in zip(chart.bars, chart.bars[1:], strict=False):
            assert one.x + one.width < other.x
        assert chart.bars[-1].x + chart.bars[-1].width <= 1000
        assert all(bar.y >= 0 and bar.y + bar.height == 100 for bar in chart.bars)


class TestCounts:
    def test_stand_side_by_side_without_those_of_none(self):
        chart = count_chart(["a", "b"], [Series("new", "x", [1, 0]), Series("old", "y", [4, 2])])
        assert [(bar.look, bar.words) for bar in chart.bars] == [
            ("x", "a: 1 new"), ("y", "a: 4 old"), ("y", "b: 2 old"),
        ]  # fmt: skip
        assert chart.bars[0].x < chart.bars[1].x < 500 < chart.bars[2].x
        assert (chart.top, chart.words) == ("5", "1 new, 6 old")

    def test_of_nothing_are_no_bars(self):
        assert count_chart(["a"], [Series("new", "x", [0])]).bars == ()
        assert count_chart([], []).bars == ()


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (1.1, 2), (4, 5), (6, 10), (99, 100), (2001, 3000)]
)
def test_nice(value, top):
    assert nice(value) == top


def test_nice_has_an_end():
    assert nice(70, most=100) == 100


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"), (4.26, "4.3 s"), (59, "59 s"), (60, "1 min"), (90, "1 min 30 s"),
        (3600, "1 h"), (3661, "1 h 1 min"), (86_400 + 5, "1 d"), (200_000, "2 d 7 h"),
        (3605, "1 h"),
    ],
)  # fmt: skip
def test_spelled(seconds, words):
    assert spelled(seconds) == words
