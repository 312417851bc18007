"""Bar charts in the language of the page. `admin/nexus/bar_chart.html` draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST = 2
"""The height of a bar for what is nearly nothing, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One bar: its height in percent of the chart, a class of the style sheet, text and link."""

    height: float
    look: str
    words: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart ready for a template: for each stretch of time its bars, side by side.

    `top` is the value of the upper edge; `target` the height of a line in percent, if there is one.
    """

    stretches: Sequence[Sequence[ChartBar]]
    top: str
    words: str
    target: float | None = None

    @property
    def is_linked(self) -> bool:
        """Whether each bar leads to the rows that it counts."""
        return any(bar.link for stretch in self.stretches for bar in stretch)


@dataclass(frozen=True, slots=True)
class Series:
    """Counts of one thing, a number for each stretch; `look` is a class of the style sheet.

    `words` says a count; `links` are the addresses of the rows behind each, or none at all.
    """

    words: Callable[[int], str]
    look: str
    counts: Sequence[int]
    links: Sequence[str] = ()


def count_chart(whens: Sequence[str], series: Sequence[Series]) -> Chart:
    """Bars side by side in each stretch, one for each series."""
    top = nice(max([1, *(count for one in series for count in one.counts)]))
    stretches = [
        [
            ChartBar(
                height=height(one.counts[place], top) if one.counts[place] else 0,
                look=one.look,
                words=f"{when}: {one.words(one.counts[place])}",
                link=one.links[place] if one.links else "",
            )
            for one in series
        ]
        for place, when in enumerate(whens)
    ]
    sums = ", ".join(one.words(sum(one.counts)) for one in series)
    return Chart(stretches=stretches, top=f"{top:g}", words=sums)


def height(value: float, top: float) -> float:
    """A bar's height in percent of the chart, so that it can be seen."""
    return round(max(LEAST, 100 * value / top), 2)


def nice(value: float, most: float = float("inf")) -> float:
    """The smallest of 1, 2, 3, 5, 10, 20, … that is not below the value, and not above `most`."""
    step = 1.0
    while True:
        for factor in (1, 2, 3, 5):
            if step * factor >= value or step * factor >= most:
                return min(step * factor, most)
        step *= 10
