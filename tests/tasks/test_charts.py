"""The bars of a measure over time: heights, looks and words. No database."""

from core.admin.charts import LEAST
from tasks.insight.charts import rate_chart
from tasks.insight.figures import CONFLICTS, INVALID_TRANSITIONS, ROLE_MATCH, Figure


def rates(*pairs, measure=ROLE_MATCH):
    figures = [Figure(measure, part, whole) for part, whole in pairs]
    return rate_chart([f"day {n}" for n in range(len(pairs))], figures)


def bars_of(chart):
    return [bar for stretch in chart.stretches for bar in stretch]


class TestARate:
    def test_is_good_or_bad_by_its_target(self):
        chart = rates((100, 100), (95, 100), (0, 0))
        assert [bar.look for bar in bars_of(chart)] == ["tc-good", "tc-bad", "tc-none"]
        assert [bar.height for bar in bars_of(chart)] == [100, 95, LEAST]
        assert (chart.top, chart.target) == ("100 %", 95)

    def test_of_few_shows_them_large(self):
        chart = rates((3, 100), (9, 100), measure=CONFLICTS)
        assert [bar.look for bar in bars_of(chart)] == ["tc-good", "tc-bad"]
        assert (chart.top, chart.target) == ("10 %", 50)
        assert [bar.height for bar in bars_of(chart)] == [30, 90]

    def test_of_none_is_good_where_none_is_the_target(self):
        chart = rates((0, None), (3, None), measure=INVALID_TRANSITIONS)
        assert [bar.look for bar in bars_of(chart)] == ["tc-good", "tc-bad"]
        assert (chart.top, chart.target) == ("3", None)

    def test_says_itself_in_words(self):
        chart = rates((28, 29), (0, 0))
        assert [bar.words for bar in bars_of(chart)] == [
            "day 0: 96.6 % (28 of 29)", "day 1: nothing to measure",
        ]  # fmt: skip
        assert chart.words == "day 0: 96.6 % (28 of 29)"
